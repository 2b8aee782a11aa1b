"""How the tests of this folder run a pass: verified before and after, printed and parsed back, and once more."""

from __future__ import annotations

from pypto import ir, passes


def run(program, *factories):
    """``program`` after the passes, each checked."""
    instruments = [passes.VerificationInstrument(), ir.make_roundtrip_instrument()]
    with passes.PassContext(instruments):
        for factory in factories:
            program = factory()(program)
    return program


def check(before, expected, *factories):
    """The passes turn ``before`` into ``expected``, and the last one leaves its own result alone."""
    after = run(before, *factories)
    ir.assert_structural_equal(after, expected)
    with passes.PassContext([]):
        assert factories[-1]()(after) is after
    return after


def unchanged(program, factory):
    """The pass returns the very program it was given."""
    with passes.PassContext([]):
        assert factory()(program) is program


def findings(program, *props):
    """Messages of the rules for ``props``."""
    return [d.message for d in passes.PropertyVerifierRegistry.verify(passes.IRPropertySet(props), program)]
