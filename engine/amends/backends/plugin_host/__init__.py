"""The plugin host: finds, tries and adopts adapters. The one owner of pluggy's manager."""

from amends.backends.plugin_host.discovery import Installed, installed
from amends.backends.plugin_host.host import examine, load
from amends.backends.plugin_host.values import Adapter, Examination, Loaded, Offered, PluginProblem, Stage

__all__ = [
    "Adapter",
    "Examination",
    "Installed",
    "Loaded",
    "Offered",
    "PluginProblem",
    "Stage",
    "examine",
    "installed",
    "load",
]
