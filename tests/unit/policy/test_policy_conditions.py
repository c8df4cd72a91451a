"""Conditions: taken apart, evaluated together again, written as text and in words."""

from itertools import product

import pytest

from amends.backends.cedar import selftest, tree
from amends.backends.cedar.conditions import because, conditions_of, value_of
from amends.backends.cedar.rendering import render
from amends.backends.cedar.words import in_words


def policy(clauses):
    (found,), findings = tree.parse(f'@id("a") @reason("r") permit (principal, action, resource) {clauses};', "f")
    assert findings == []
    return found


def expression(text):
    return policy(f"when {{ {text} }}").template.clauses[0].expr


@pytest.mark.parametrize(
    "text",
    [
        "context.a && (context.b || !context.c)",
        "!(context has x)",
        "(1 + 2) * 3 - (4 - 5) == -6",
        'context["a b"].c == "é\\n\\"\\\\"',
        'context.s like "a\\**b*"',
        "if context.a then context.b else if context.c then context.d else context.e",
        "(if context.a then context.b else context.c) && context.d",
        "context.a == (context.b == context.c)",
        'principal is A::B in C::"d" && resource is A::B',
        'context.w.containsAny(["a", "b"]) || context.w.contains("c") || context.w.isEmpty()',
        'context.t.durationSince(datetime("2026-01-01")) <= duration("1h")',
        "(context has a) == true",
        'context.r == {"a": 1, "b c": [2]}',
        'context.s == "\\u{1}\\u{8}"',
    ],
)
def test_text_of_a_condition_parses_back_to_it(text):
    """What is shown is what is evaluated."""
    tree_of_it = expression(text)
    assert expression(render(tree_of_it)) == tree_of_it


def test_conditions_are_the_smallest_questions_in_the_order_written():
    """`and`, `or` and `not` put conditions together; `unless` says where a condition stands."""
    found = conditions_of(policy("when { context.a && (context.b || !context.c) } unless { context.d }"))
    assert [(item.number, item.clause, item.text) for item in found.items] == [
        (1, "when", "context.a"),
        (2, "when", "context.b"),
        (3, "when", "context.c"),
        (4, "unless", "context.d"),
    ]


def test_conditions_come_together_as_cedar_would_say():
    """Over every combination of values: the formula is what the clauses mean, and its grounds suffice for it."""
    formula = conditions_of(policy("when { context.a && (context.b || !context.c) } unless { context.d }")).formula
    for a, b, c, d in product([True, False], repeat=4):
        values = (a, b, c, d)
        expected = a and (b or not c) and not d
        assert value_of(formula, values) is expected
        grounds = set(because(formula, values))
        free = [n for n in range(1, 5) if n not in grounds]
        for others in product([True, False], repeat=len(free)):
            changed = list(values)
            for number, value in zip(free, others, strict=True):
                changed[number - 1] = value
            assert value_of(formula, changed) is expected


def test_guarded_condition_is_not_reached():
    """An attribute that is absent is not asked for; without a guard nothing can be said."""
    guarded = conditions_of(policy("when { context has a && context.a.b }")).formula
    assert value_of(guarded, (False, None)) is False
    assert list(because(guarded, (False, None))) == [1]
    assert value_of(guarded, (True, None)) is None


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        ("context.evidence.complete", False, "the evidence about the effect is not complete"),
        ("context.evidence.complete", True, "the evidence about the effect is complete"),
        ('context.time.age <= duration("30s")', False, "the age of the effect is more than 30s: it was 1m"),
        ("principal.tenant == resource.tenant", False, "own against other"),
        ("context has approval", False, "there is no approval"),
        ('resource.environment == "staging"', False, "the environment is not `staging`: it was production"),
        ('context.time.windows.contains("night")', False, "the time windows open then do not include `night`"),
        ('context.run.workflow like "a*"', False, 'the workflow is not like "a*": it was selftest'),
        ("principal is Amends::Human", False, "who asks is not of type Human"),
        ("context.input.quantity > 3", False, "the input `quantity` is not more than `3`"),
        ("context.input has quantity", False, "`context.input.quantity` is not there"),
        ("context.approval.tier >= 1", None, "`context.approval.tier >= 1` was not reached"),
        ("if context.a then context.b else context.c", True, "is true"),
    ],
)
def test_condition_is_told_in_words_with_its_value(text, value, words):
    """What was the case, with what was found; people do not read Cedar."""
    (item,) = conditions_of(policy(f"when {{ {text} }}")).items
    assert words in in_words(item, value, selftest.question("undo", tenant="other"))
