"""Amends adapter: Jira issues (Cloud and Data Center): transitions, comments, assignments, labels, links."""
