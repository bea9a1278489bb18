"""Where the tables lie, and how they are kept."""
