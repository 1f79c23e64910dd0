"""break, continue and return as conditions: what follows them runs where they did not happen.

A jump sets a flag; the statements after one that may have jumped go where the flag is not set: into
the other branch where one branch always jumps, else under a condition on the flag. Loops end by the
flags of their breaks (`stops` of a loop's node), which a condition on tensors can set.

Returns are rewritten only where one is inside of a condition or loop that tensors may decide.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .names import own_nodes
from .source_tree import NotConvertibleError
from .syntax import PREFIX, assign, at, constant, is_pythons, load, negated

RESULT = f"{PREFIX}result"
_RETURNED = f"{PREFIX}returned"
_JUMPS = ast.Return | ast.Break | ast.Continue
_Block = Sequence[ast.stmt]


def lower_jumps(body: _Block) -> list[ast.stmt]:
    """The body of a function without jumps that depend on tensors."""
    lowering = _Lowering()
    for place, statement in enumerate(body):
        if _returns_inside(statement):
            last = at(statement, ast.Return(load(RESULT)))
            begun = lowering.without_returns(body[:place])
            return [*begun, *lowering.to_result(body[place:], statement), last]
    return lowering.without_returns(body)


def _returns_inside(node: ast.stmt) -> bool:
    """Whether a return in the statement may depend on tensors."""
    for n in own_nodes([node]):
        stages = isinstance(n, ast.For | ast.While) or (
            isinstance(n, ast.If) and not is_pythons(n.test)
        )
        if stages and _has(n, ast.Return):
            return True
    return False


def _has(node: ast.AST, kinds: type[ast.AST] | object) -> bool:
    return any(isinstance(n, kinds) for n in own_nodes([node]))  # type: ignore[arg-type]  # a union of types


def always_jumps(body: _Block) -> bool:
    """Whether the end of a block is never reached."""
    for s in body:
        if isinstance(s, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(s, ast.If) and always_jumps(s.body) and always_jumps(s.orelse):
            return True
        if isinstance(s, ast.With) and always_jumps(s.body):
            return True
        if isinstance(s, ast.While) and _is_endless(s):
            return True
    return False


def _is_endless(loop: ast.While) -> bool:
    """Whether a loop is left by a return alone."""
    return isinstance(loop.test, ast.Constant) and bool(loop.test.value) and not _breaks(loop.body)


def _breaks(block: _Block) -> bool:
    """Whether a block breaks the loop that it is the body of."""
    for s in block:
        if isinstance(s, ast.Break):
            return True
        if isinstance(s, ast.For | ast.While):
            if _breaks(s.orelse):
                return True
        elif any(_breaks(inner) for inner in _blocks(s)):
            return True
    return False


def _blocks(s: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a compound statement that is no loop, nor a scope of its own."""
    match s:
        case ast.If() | ast.With():
            return [s.body, *([s.orelse] if isinstance(s, ast.If) else [])]
        case ast.Try():
            return [s.body, s.orelse, s.finalbody, *(h.body for h in s.handlers)]
        case ast.Match():
            return [c.body for c in s.cases]
    return []


class _Lowering:
    def __init__(self) -> None:
        self._count = 0

    def _flag(self, what: str) -> str:
        self._count += 1
        return f"{PREFIX}{what}_{self._count}"

    # What goes on to the end of the function

    def to_result(self, block: _Block, near: ast.AST) -> list[ast.stmt]:
        """The rest of a function where RESULT gets the value that it returns."""
        done: list[ast.stmt] = []
        for place, s in enumerate(block):
            rest = block[place + 1 :]
            if isinstance(s, ast.Return):
                done.append(_result(s))
                return done
            if not _has(s, ast.Return):
                done += self.without_returns([s])
                continue
            if isinstance(s, ast.If):
                ends = always_jumps(s.body), always_jumps(s.orelse)
                if any(ends) or not rest:
                    body = self.to_result(s.body if ends[0] else [*s.body, *rest], s)
                    orelse = self.to_result(s.orelse if ends[1] else [*s.orelse, *rest], s)
                    done.append(at(s, ast.If(s.test, body, orelse)))
                    return done
            done.append(at(s, assign(_RETURNED, constant(False))))
            lowered, _ = self.block([s], {})
            done += lowered
            if always_jumps([s]):
                return done
            others = self.to_result(rest, s)
            done.append(at(s, ast.If(negated([_RETURNED]), others, [])))
            return done
        done.append(at(block[-1] if block else near, assign(RESULT, constant(None))))
        return done

    # One block

    def without_returns(self, block: _Block) -> list[ast.stmt]:
        """A block of which nothing jumps out, but by a return that stays Python's."""
        return self.block(block, _KeepsReturns())[0]

    def block(self, block: _Block, jumps: dict[str, str]) -> tuple[list[ast.stmt], set[str]]:
        """A block without jumps, and the flags that may be set in it.

        Args:
            block: its statements.
            jumps: the flag of "break" and of "continue", in a loop.
        """
        done: list[ast.stmt] = []
        for place, s in enumerate(block):
            rest = block[place + 1 :]
            match s:
                case ast.Break() | ast.Continue():
                    flag = jumps["break" if isinstance(s, ast.Break) else "continue"]
                    return [*done, at(s, assign(flag, constant(True)))], {flag}
                case ast.Return() if not isinstance(jumps, _KeepsReturns):
                    done += [_result(s), at(s, assign(_RETURNED, constant(True)))]
                    return done, {_RETURNED}
            found, flags = self._compound(s, rest, jumps)
            if found is None:
                lowered, flags = self._inside(s, jumps)
                done += lowered
                if flags and rest:
                    guarded, more = self.block(rest, jumps)
                    done.append(at(rest[0], ast.If(negated(sorted(flags)), guarded, [])))
                    flags |= more
                if flags:
                    return done, flags
                continue
            return [*done, *found], flags
        return done, set()

    def _compound(
        self, s: ast.stmt, rest: _Block, jumps: dict[str, str]
    ) -> tuple[list[ast.stmt] | None, set[str]]:
        """A condition of which one branch always jumps, with what follows in the other."""
        if not isinstance(s, ast.If) or not rest or not _has_jump(s, jumps):
            return None, set()
        ends = always_jumps(s.body), always_jumps(s.orelse)
        if ends[0] == ends[1] or _has_jump_in(s.orelse if ends[0] else s.body, jumps):
            return None, set()
        body, first = self.block(s.body if ends[0] else [*s.body, *rest], jumps)
        orelse, second = self.block(s.orelse if ends[1] else [*s.orelse, *rest], jumps)
        return [at(s, ast.If(s.test, body, orelse))], first | second

    def _inside(self, s: ast.stmt, jumps: dict[str, str]) -> tuple[list[ast.stmt], set[str]]:
        flags: set[str] = set()

        def inner(block: _Block) -> list[ast.stmt]:
            lowered, found = self.block(block, jumps)
            flags.update(found)
            return lowered

        match s:
            case ast.If():
                made: ast.stmt = ast.If(s.test, inner(s.body), inner(s.orelse))
            case ast.With():
                made = ast.With(s.items, inner(s.body))
            case ast.Try():
                if any(_has(x, _JUMPS) for x in s.finalbody):
                    raise NotConvertibleError(f"line {s.lineno} jumps out of `finally`")
                body = inner(s.body)
                after = sorted(flags)
                orelse = inner(s.orelse)
                if after and orelse:  # after a jump there is no `else`
                    orelse = [at(s, ast.If(negated(after), orelse, []))]
                handlers = [
                    at(h, ast.ExceptHandler(h.type, h.name, inner(h.body))) for h in s.handlers
                ]
                made = ast.Try(body, handlers, orelse, inner(s.finalbody))
            case ast.Match():
                cases = [ast.match_case(c.pattern, c.guard, inner(c.body)) for c in s.cases]
                made = ast.Match(s.subject, cases)
            case ast.For() | ast.While():
                return self._loop(s, jumps)
            case _:
                return [s], flags
        return [at(s, made)], flags

    def _loop(
        self, s: ast.For | ast.While, jumps: dict[str, str]
    ) -> tuple[list[ast.stmt], set[str]]:
        broken, skipped = self._flag("broken"), self._flag("skipped")
        inner: dict[str, str] = {"break": broken, "continue": skipped}
        if isinstance(jumps, _KeepsReturns):
            inner = _KeepsReturns(inner)
        body, flags = self.block(s.body, inner)
        done: list[ast.stmt] = []
        if skipped in flags:
            body.insert(0, at(s, assign(skipped, constant(False))))
        stops = sorted(flags - {skipped})
        if broken in stops:
            done.append(at(s, assign(broken, constant(False))))
        if isinstance(s, ast.For):
            made: ast.For | ast.While = at(s, ast.For(s.target, s.iter, body, []))
        else:
            test = s.test
            if stops:
                test = at(s.test, ast.BoolOp(ast.And(), [negated(stops), s.test]))
            made = at(s, ast.While(test, body, []))
        made.stops = set(stops)  # type: ignore[union-attr]  # what it ends by
        done.append(made)
        left = {_RETURNED} & flags
        if s.orelse:
            orelse, more = self.block(s.orelse, jumps)
            left |= more
            if stops:
                orelse = [at(s.orelse[0], ast.If(negated(stops), orelse, []))]
            done += orelse
        return done, left


class _KeepsReturns(dict[str, str]):
    """The flags of jumps where a return stays as it is."""


def _result(s: ast.Return) -> ast.stmt:
    return at(s, assign(RESULT, s.value if s.value is not None else constant(None)))


def _has_jump(node: ast.stmt, jumps: dict[str, str]) -> bool:
    if isinstance(node, ast.If):
        return _has_jump_in(node.body, jumps) or _has_jump_in(node.orelse, jumps)
    if isinstance(node, ast.Break | ast.Continue):
        return True
    if isinstance(node, ast.Return):
        return not isinstance(jumps, _KeepsReturns)
    if isinstance(node, ast.For | ast.While):
        return _has(node, ast.Return) and not isinstance(jumps, _KeepsReturns)
    return _has(node, _JUMPS)


def _has_jump_in(block: _Block, jumps: dict[str, str]) -> bool:
    return any(_has_jump(s, jumps) for s in block)
