"""`make demo`: an agent is killed in mid-run and recovered in another process; then the same run without Amends."""
