"""Amends adapter: Slack messages: post, reply, update, delete, schedule."""
