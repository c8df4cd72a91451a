"""A port is small, and its prose is the contract."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORTS = sorted((ROOT / "engine/amends/ports").glob("*.py"))


def is_protocol(node):
    return isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)


@pytest.mark.parametrize("path", PORTS, ids=lambda path: path.stem)
def test_every_port_method_states_its_contract(path):
    """Implementations do not repeat a port's docstrings, so none may be missing there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    methods = [
        (port.name, node)
        for port in filter(is_protocol, ast.walk(tree))
        for node in port.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__")
    ]
    assert [f"{port}.{node.name}" for port, node in methods if not ast.get_docstring(node)] == []
