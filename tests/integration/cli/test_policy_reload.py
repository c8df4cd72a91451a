"""`amends policy reload`, `doctor` and `worker` when the site's policies change."""

import pytest

RULE = """@id("site:rule") @reason("a site's own rule")
forbid (principal is Amends::Agent, action == Shop::Action::"shop.reserve", resource)
when {{ {condition} }};
"""


@pytest.fixture
def site(project):
    """Write the site's bundle."""
    with project.open("a", encoding="utf-8") as file:
        file.write('\n[policies]\nbundle = "policies"\n')

    def write(label, condition="false"):
        folder = project.parent / "policies"
        folder.mkdir(exist_ok=True)
        (folder / "bundle.toml").write_text(f'label = "{label}"\n', encoding="utf-8")
        (folder / "site.cedar").write_text(RULE.format(condition=condition), encoding="utf-8")

    write("1.0.0")
    return write


def findings(told, level):
    return [f["message"] for f in told.json["findings"] if f["level"] == level and f["subject"] == "policies"]


def test_reload_says_what_decides(amends, site):
    """A sound bundle, for people and for programs."""
    assert "sound: 1.0.0@sha256:" in amends("policy", "reload").out
    assert "unchanged: 1.0.0@sha256:" in amends("policy", "reload").out
    site("1.1.0", "true")
    told = amends("policy", "reload", "--json").json
    assert (told["outcome"], told["problems"]) == ("activated", [])
    assert told["version"].startswith("1.1.0@sha256:")


def test_reload_says_what_is_wrong_and_exits_1(amends, site):
    """By file, line and policy, with what goes on deciding; doctor says the same until it is repaired."""
    amends("policy", "reload")
    site("1.1.0", "context.nothing")
    told = amends("policy", "reload", code=1)
    assert "refused: 1.1.0@sha256:" in told.out
    assert "1.0.0@sha256:" in told.out
    assert "site/site.cedar:1: policy `site:rule`" in told.out
    doctor = amends("doctor", "--json", code=1)
    (refused,) = [message for message in findings(doctor, "problem") if "was refused" in message]
    assert "site/site.cedar:1: policy `site:rule`" in refused
    remedies = [f["remedy"] for f in doctor.json["findings"] if "was refused" in f["message"]]
    assert "`1.0.0@sha256:" in remedies[0]
    site("1.1.1")
    amends("policy", "reload")
    assert findings(amends("doctor", "--json", code=amends_code(amends)), "problem") == []


def amends_code(amends):
    """The tiny project's doctor may complain of other things; only the policies are looked at here."""
    try:
        amends("doctor")
    except AssertionError:
        return 1
    return 0


def test_doctor_says_what_is_asked_in_the_shadow(amends, site, project):
    """And that a broken one cannot be asked, as a warning: it prevents nothing."""
    text = project.read_text(encoding="utf-8").replace('bundle = "policies"', 'bundle = "policies"\nshadow = "next"')
    project.write_text(text, encoding="utf-8")
    folder = project.parent / "next"
    folder.mkdir()
    (folder / "bundle.toml").write_text('label = "2.0.0-dev"\n', encoding="utf-8")
    (folder / "site.cedar").write_text(RULE.format(condition="true"), encoding="utf-8")
    code = amends_code(amends)
    assert any(m.startswith("in the shadow: 2.0.0-dev@") for m in findings(amends("doctor", "--json", code=code), "ok"))
    (folder / "site.cedar").write_text("forbid (", encoding="utf-8")
    doctor = amends("doctor", "--json", code=code)
    assert any("the shadow bundle cannot be asked" in message for message in findings(doctor, "warning"))
    assert findings(doctor, "problem") == []


def test_a_worker_takes_policies_up_as_they_change(amends, site, monkeypatch):
    """At its next look, and says so; bad ones are said once and change nothing."""
    from amends.surfaces.cli import worker

    looks = []
    real = worker._round

    def between(session, engine):
        looks.append(engine.kit.authorizer.bundle().version.split("@")[0])
        if len(looks) == 1:
            site("1.1.0", "true")
        if len(looks) == 2:
            site("1.2.0", "context.nothing")
        return real(session, engine)

    monkeypatch.setattr(worker, "_round", between)
    told = amends("worker", "--rounds", "4", "--poll", "0.1")
    assert looks == ["1.0.0", "1.1.0", "1.1.0", "1.1.0"]
    assert "1.1.0@sha256:" in told.err
    assert told.err.count("the new ones are refused") == 1
