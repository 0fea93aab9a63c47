"""A ledger that adds up amounts."""


def total(amounts: list[int]) -> int:
    """The sum of all amounts."""
    result = 0
    for amount in amounts:
        result += amount
    return result


def average(amounts: list[int]) -> float:
    """The mean of all amounts, 0 for none."""
    return total(amounts) / len(amounts) if amounts else 0
