"""The XML of every dialect says every fact of tests/data/facts, no more and no less."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from codecgen.load import PROJECT_DIALECTS, load_dialect
from codecgen.model import Assert, Dialect, Field
from support import oracle
from support.data_files import FILES, formed

ROOT = Path(__file__).resolve().parents[2]

ADDED_DOMAINS = {"amqp-0-9": [{"name": "content", "type": "content", "asserts": []}]}
"""Used by amqp-0-9 without being declared in the original."""

CORRECTIONS = {
    "amqp-0-8": {
        ("amqp", "accepted-headers", "1.1.9.1"),
        ("connection.close.method-id", "domain", "method-id"),
    },
    "qpid-0-8": {("amqp", "accepted-headers", "1.1.9.1"), ("exchange.bound", "responses", "bound-ok")},
    "amqp-0-9": set(),
    "amqp-0-9-1": {("basic.recover", "responses", "recover-ok")},
    "rabbitmq-0-9-1": {
        ("amqp", "accepted-headers", "1.1.0.9"),
        ("basic.recover", "responses", "recover-ok"),
        ("connection.update-secret", "server", "MUST"),
        ("connection.update-secret", "client", ""),
        ("connection.update-secret-ok", "client", "MUST"),
        ("connection.update-secret-ok", "server", ""),
    },
}
"""Everything the overlays change: element, attribute and new value."""


def uncorrected(name: str) -> Dialect:
    return load_dialect(ROOT / "spec" / f"{name}.xml", root=ROOT, corrections=False)


def corrected(name: str) -> Dialect:
    return load_dialect(ROOT / "spec" / f"{name}.xml", root=ROOT)


def by_name(items: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in items}


def assert_fact(condition: Assert) -> dict[str, Any]:
    fact: dict[str, Any] = {"check": condition.check}
    for key in ("value", "rule", "method", "field"):
        if getattr(condition, key) is not None:
            fact[key] = getattr(condition, key)
    if condition.values:
        fact["values"] = list(condition.values)
    return fact


def field_fact(dialect: Dialect, field: Field) -> dict[str, Any]:
    """The field as in the facts: with its own asserts only, since its domain has the others."""
    inherited = {domain.name: len(domain.asserts) for domain in dialect.domains}.get(field.domain, 0)
    return {
        "name": field.name,
        "domain": field.domain,
        "type": field.type,
        "reserved": field.reserved,
        "asserts": [assert_fact(each) for each in field.asserts[inherited:]],
    }


def class_facts(dialect: Dialect) -> list[dict[str, Any]]:
    return [
        {
            "name": cls.name,
            "index": cls.class_id,
            "handler": cls.handler,
            "server": cls.server,
            "client": cls.client,
            "properties": [
                {"name": field.name, "domain": field.domain, "type": field.type} for field in cls.properties
            ],
            "methods": [
                {
                    "name": method.name,
                    "index": method.method_id,
                    "synchronous": method.synchronous,
                    "content": method.content,
                    "deprecated": method.deprecated,
                    "responses": list(method.responses),
                    "server": method.server,
                    "client": method.client,
                    "fields": [field_fact(dialect, field) for field in method.fields],
                }
                for method in cls.methods
            ],
        }
        for cls in dialect.classes
    ]


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_classes_methods_and_fields_are_those_of_the_facts_in_their_order(name: str) -> None:
    here = f"spec/{name}.xml and tests/data/facts/{name}.json differ"
    known = by_name(oracle.facts(name)["classes"])
    for found in class_facts(uncorrected(name)):
        methods = by_name(known.get(found["name"], {}).get("methods", []))
        for method in found["methods"]:
            assert method == methods.get(method["name"]), f"{here} in {found['name']}.{method['name']}"
        assert found == known.get(found["name"]), f"{here} in the class {found['name']}"
    assert class_facts(uncorrected(name)) == oracle.facts(name)["classes"], here


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_constants_are_those_of_the_facts(name: str) -> None:
    constants = [
        {"name": each.name, "value": each.value, "error_kind": each.kind}
        for each in uncorrected(name).constants
    ]
    facts = oracle.facts(name)["constants"]
    assert len(constants) == len(facts)
    assert by_name(constants) == by_name(facts)


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_domains_are_those_of_the_facts(name: str) -> None:
    domains = [
        {"name": each.name, "type": each.type, "asserts": [assert_fact(a) for a in each.asserts]}
        for each in uncorrected(name).domains
    ]
    facts = oracle.facts(name)["domains"] + ADDED_DOMAINS.get(name, [])
    assert len(domains) == len(facts)
    assert by_name(domains) == by_name(facts)


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_version_port_and_headers_are_those_of_the_facts(name: str) -> None:
    dialect, protocol = corrected(name), oracle.facts(name)["protocol"]
    assert (dialect.major, dialect.minor, dialect.revision, dialect.port) == (
        protocol["major"],
        protocol["minor"],
        protocol["revision"],
        protocol["port"],
    )
    assert dialect.protocol_header.hex() == protocol["protocol_header"]
    headers = [protocol["protocol_header"], *protocol["also_seen_headers"]]
    assert [header.hex() for header in dialect.accepted_headers] == headers


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_data_file_is_as_its_tool_writes_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text == formed(json.loads(text)), "PYTHONPATH=tests python -m support.data_files writes it again"


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_no_two_methods_of_a_dialect_have_one_number(name: str) -> None:
    dialect = corrected(name)
    assert len({method.index for method in dialect.methods}) == len(dialect.methods)


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_overlays_change_what_is_listed_here_and_nothing_else(name: str) -> None:
    dialect = corrected(name)
    made = {(each.element, each.attribute, each.now) for each in dialect.corrections}
    assert made == CORRECTIONS[name]
    changed = {
        method.full_name
        for method, before in zip(dialect.methods, uncorrected(name).methods, strict=True)
        if method != before
    }
    assert changed == {".".join(element.split(".")[:2]) for element, _, _ in made if element != "amqp"}


@pytest.mark.parametrize("name", ["amqp-0-9-1", "rabbitmq-0-9-1"])
def test_recover_waits_for_recover_ok(name: str) -> None:
    (recover,) = (method for method in corrected(name).methods if method.full_name == "basic.recover")
    assert recover.responses == ("recover-ok",)


def test_clients_send_update_secret_and_wait_for_the_answer_of_the_broker() -> None:
    methods = {method.full_name: method for method in corrected("rabbitmq-0-9-1").methods}
    request, answer = methods["connection.update-secret"], methods["connection.update-secret-ok"]
    assert (request.server, request.client, request.responses) == ("MUST", None, ("update-secret-ok",))
    assert request.synchronous
    assert (answer.server, answer.client, answer.responses) == (None, "MUST", ())


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_everything_has_a_label_of_a_few_words(name: str) -> None:
    dialect = corrected(name)
    labels = {f"constant {each.name}": each.label for each in dialect.constants}
    labels |= {f"domain {each.name}": each.label for each in dialect.domains}
    for cls in dialect.classes:
        labels[cls.name] = cls.label
        labels |= {f"{cls.name} property {field.name}": field.label for field in cls.properties}
        for method in cls.methods:
            labels[method.full_name] = method.label
            labels |= {f"{method.full_name} {field.name}": field.label for field in method.fields}
    assert {what: label for what, label in labels.items() if not 2 <= len(label.split()) <= 9} == {}


def test_the_places_where_contributors_add_the_facts_of_a_method_have_those_of_today() -> None:
    section = (
        (ROOT / "CONTRIBUTING.md")
        .read_text(encoding="utf-8")
        .partition("## What the tests say about each method\n")[2]
    )
    named = re.findall(r"`(?:(\w+)` in `)?(tests/[^`]+)`", section.partition("\n## ")[0])
    assert len(named) == 4
    for name, place in named:
        path = ROOT / place.replace("<dialect>", "rabbitmq-0-9-1")
        octets = path.read_bytes()
        text = (gzip.decompress(octets) if path.suffix == ".gz" else octets).decode()
        assert (name or "update-secret-ok") in text, path  # the newest method
