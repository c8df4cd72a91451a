"""SQLite: a file, its lock beside it, and copies in temporary folders."""
