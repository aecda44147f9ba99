"""The Heat template language: reads, checks and evaluates templates and environments. No I/O.

Packages, lowest first; a package imports only those above it in this list:

- syntax: text to documents (YAML, JSON), and glob patterns.
- expressions: values with unresolved calls, masks for secret values, path lookup.
- functions: the functions of HOT and CFN that work on values alone, and the cost budget.
- patterns: regular expressions with bounded cost.
- yaql: yaql expressions with bounded cost.
- language: the template versions, their functions, and the dialects HOT and CFN.
- schema: schemas of resource types, properties and parameters, and checks of values.
- template: the template as written.
- environment: parameters, the resource registry, hooks and event sinks of an environment.
- evaluation: conditions, partial evaluation when a stack is defined, resolution afterwards.
- nested: templates as resource types, and members of groups.
- definition: a template with its environment and parameters as a checked stack definition.
"""
