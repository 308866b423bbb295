"""Errors of the contract. A class is a decision; its docstring says which."""


class ContractError(ValueError):
    """Data does not have the agreed shape. Permanent: refuse it, keep the raw text, go on with the next."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'body'}: {problem}")
        self.path = path
        self.problem = problem


class UnsupportedVersion(ContractError):
    """The other side speaks a version that is too new or too old. Operator: upgrade the older of MA and
    KMA."""
