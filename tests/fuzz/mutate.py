"""Small mistakes in the text of a kernel: names, numbers, dtypes, arity, keywords, nesting."""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable
from typing import Any

_DTYPES = ("FP32", "FP16", "INT32", "INT8", "BOOL", "INDEX", "NOPE")


def mutated(source: str, seed: int) -> str:
    """``source`` with one to three mistakes; it may still be right."""
    rng = random.Random(seed)
    tree = ast.parse(source)
    for _ in range(rng.randint(1, 3)):
        rng.choice(_MUTATIONS)(tree, rng)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _pick(tree: Any, rng: random.Random, kind: type, wanted: Callable[[Any], bool] = lambda n: True) -> Any:
    body = [n for s in tree.body for b in s.body for n in ast.walk(b)]
    found = [n for n in body if isinstance(n, kind) and wanted(n)]
    return rng.choice(found) if found else None


def _name(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Name, lambda n: n.id != "pl")
    other = _pick(tree, rng, ast.Name, lambda n: n.id != "pl")
    if node is not None and other is not None:
        node.id = rng.choice([node.id + "x", other.id, "n", "x2", "y3"])


def _number(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Constant, lambda n: isinstance(n.value, (int, float)))
    if node is not None:
        node.value = rng.choice([0, 1, -1, 7, 17, 64, 1000, 2**40, 1.5, "text", True, None])


def _dtype(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Attribute, lambda n: n.attr in _DTYPES)
    if node is not None:
        node.attr = rng.choice(_DTYPES)


def _operator(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Attribute, lambda n: n.attr not in _DTYPES)
    other = _pick(tree, rng, ast.Attribute, lambda n: n.attr not in _DTYPES)
    if node is not None and other is not None:
        node.attr = rng.choice([other.attr, node.attr + "s", "matmul", "reshape", "exp", "row_max", "yield_", "at"])


def _arity(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Call)
    if node is None:
        return
    change = rng.choice(["drop", "repeat", "swap", "keyword", "rename", "star"])
    if change == "drop" and node.args:
        node.args.pop(rng.randrange(len(node.args)))
    elif change == "repeat" and node.args:
        node.args.append(node.args[0])
    elif change == "swap":
        rng.shuffle(node.args)
    elif change == "keyword":
        node.keywords.append(ast.keyword(rng.choice(["foo", "dtype", "shape", "tile"]), ast.Constant(3)))
    elif change == "rename" and node.keywords:
        node.keywords[0].arg = "bar"
    elif change == "star" and node.args:
        node.args[0] = ast.Starred(node.args[0], ast.Load())


def _list(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.List)
    if node is not None:
        change = rng.choice(["drop", "repeat", "empty", "nest"])
        if change == "drop" and node.elts:
            node.elts.pop()
        elif change == "repeat" and node.elts:
            node.elts.append(node.elts[0])
        elif change == "empty":
            node.elts = []
        elif node.elts:
            node.elts[0] = ast.List([node.elts[0]], ast.Load())


def _statement(tree: ast.AST, rng: random.Random) -> None:
    bodies = [n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.If, ast.While, ast.FunctionDef))]
    one, two = rng.choice(bodies), rng.choice(bodies)
    change = rng.choice(["move", "jump", "return", "drop", "else", "function", "delete"])
    if change == "move" and len(one.body) > 1:
        two.body.insert(rng.randrange(len(two.body) + 1), copy.deepcopy(one.body[-1]))
    elif change == "drop" and len(one.body) > 1:
        one.body.pop(rng.randrange(len(one.body)))
    elif change == "jump":
        two.body.insert(rng.randrange(len(two.body) + 1), rng.choice([ast.Break(), ast.Continue(), ast.Pass()]))
    elif change == "return":
        two.body.insert(rng.randrange(len(two.body) + 1), ast.Return(ast.Name("n", ast.Load())))
    elif change == "else" and isinstance(one, (ast.For, ast.While)):
        one.orelse = [ast.Pass()]
    elif change == "delete":
        two.body.append(ast.Delete([ast.Name("x0", ast.Del())]))
    elif change == "function":
        two.body.append(ast.parse("def g(a):\n    return a").body[0])


def _expression(tree: ast.AST, rng: random.Random) -> None:
    node = _pick(tree, rng, ast.Call, lambda n: bool(n.args))
    other = _pick(tree, rng, ast.expr)
    if node is not None and other is not None and not any(n is node for n in ast.walk(other)):
        node.args[rng.randrange(len(node.args))] = copy.deepcopy(other)


_MUTATIONS = (_name, _number, _dtype, _operator, _arity, _list, _statement, _expression)
