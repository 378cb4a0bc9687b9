"""What may enter: one table of checks over one content, whatever door it comes by."""
