"""The fleet: the memories of other repositories, which only the user can enable.

It is off until the user's own settings name repositories or a server. All stored data is derived:
it can be deleted and is rebuilt from git.
"""
