"""What the schema of an input cannot say: how deep it is, what goes together, which variables there are."""

from collections.abc import Iterator
from typing import Any

import msgspec

from scrapeyard.builtin.actions.steps import (
    MAX_DEPTH,
    MAX_STEPS,
    ActionsInput,
    ActionStep,
    Condition,
    DownloadStep,
    EvaluateStep,
    ExtractStep,
    ForEachStep,
    IfStep,
    SetStep,
    SolveCaptchaStep,
    UploadStep,
    WaitForStep,
    WhileStep,
    nested,
)
from scrapeyard.builtin.actions.variables import names_in
from scrapeyard.errors import InputInvalid

_WAITS = ("selector", "text", "url", "response", "load", "expression", "seconds")
_CONDITIONS = ("element", "text", "url", "expression", "variable")


def read_actions(given: dict[str, Any]) -> ActionsInput:
    """The steps of an input that fits the schema. Raises InputInvalid with the place of the first fault."""
    try:
        asked = msgspec.convert(given, ActionsInput)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputInvalid(str(error)) from None
    steps = list(walk(asked))
    if len(steps) > MAX_STEPS:
        raise InputInvalid(f"there are {len(steps)} steps; at most {MAX_STEPS} are taken")
    if not steps and not asked.url:
        raise InputInvalid("there is nothing to do: give a url, steps, or both")
    names = {*asked.variables, *(name for _, step, _ in steps for name in _names_of(step))}
    for path, step, depth in steps:
        if fault := _fault(step, depth, names):
            raise InputInvalid(f"{path}: {fault}")
    return asked


def walk(asked: ActionsInput) -> Iterator[tuple[str, ActionStep, int]]:
    """Every step with its path, such as `steps[3].then[0]`, and its depth, from 1."""
    waiting = [("steps", asked.steps, 1)]
    while waiting:
        path, steps, depth = waiting.pop()
        for at, step in enumerate(steps):
            here = f"{path}[{at}]"
            yield here, step, depth
            waiting += [(f"{here}.{name}", inner, depth + 1) for name, inner in nested(step).items()]


def _fault(step: ActionStep, depth: int, names: set[str]) -> str:
    if depth > MAX_DEPTH:
        return f"steps are nested deeper than {MAX_DEPTH} levels"
    unknown = sorted(set(_references(step)) - names)
    if unknown:
        return f"there is no variable {unknown[0][:100]}; set it, or give it in `variables`"
    if isinstance(step, WaitForStep):
        return _one_of(step, _WAITS)
    if isinstance(step, DownloadStep):
        return _one_of(step, ("selector", "url"))
    if isinstance(step, ForEachStep):
        return _one_of(step, ("selector", "items"))
    if isinstance(step, UploadStep):
        faults = (_one_of(file, ("base64", "url")) for file in step.files)
        return next((fault for fault in faults if fault), "")
    if isinstance(step, SolveCaptchaStep) and bool(step.selector) != bool(step.into):
        return "a picture needs both selector and into; a checkbox needs neither"
    if isinstance(step, IfStep | WhileStep):
        return _one_of(step.condition, _CONDITIONS)
    return ""


def _one_of(part: msgspec.Struct, names: tuple[str, ...]) -> str:
    given = [name for name in names if getattr(part, name) not in ("", None)]
    if len(given) == 1:
        return ""
    found = " and ".join(given) if given else "none"
    return f"give one of {', '.join(names)}; there is {found}"


def _references(step: ActionStep) -> Iterator[str]:
    """The variables that a step refers to, but for those of the steps within it."""
    below = {"then", "else_", "steps"}
    for name in step.__struct_fields__:
        value = getattr(step, name)
        if isinstance(value, Condition):
            yield from names_in(msgspec.to_builtins(value))
            if value.variable:
                yield value.variable.partition(".")[0]
        elif name not in below:
            yield from names_in(msgspec.to_builtins(value))


def _names_of(step: ActionStep) -> Iterator[str]:
    """The variables that a step sets."""
    if isinstance(step, SetStep):
        yield from step.variables
    elif isinstance(step, ForEachStep):
        yield step.as_
        yield step.index
    elif isinstance(step, ExtractStep | EvaluateStep | DownloadStep | WaitForStep | SolveCaptchaStep) and step.name:
        yield step.name
