"""The fleet: the memories of other repositories, asked by the user alone, derived from their files.

Off until the user's own settings name repositories or a server. Nothing of it is a truth of its
own: whatever is kept can be deleted, and is made again from git.
"""
