"""The contracts of the Jira capabilities: what people see, what can be taken back, and how it is found again."""

from amends_jira.contracts.creations import comment, correction, create, link, remote_link
from amends_jira.contracts.shared import KEY
from amends_jira.contracts.states import assign, labels, transition

__all__ = ["KEY", "assign", "comment", "correction", "create", "labels", "link", "remote_link", "transition"]
