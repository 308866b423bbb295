"""./ma test --changed: the tests that a change breaks first, for as long as somebody waits.

`changes` asks git, `order` ranks, `run` starts two sessions of pytest (`worker`) and the static checks beside
them. What each test executes is recorded at night by `recorder` into an `ExecutionMap`; without one, imports
rank."""
