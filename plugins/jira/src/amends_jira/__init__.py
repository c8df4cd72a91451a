"""Amends adapter: Jira Cloud issues: transitions, comments, assignments."""
