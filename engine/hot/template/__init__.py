"""A template as written: sections, parameters, resources, outputs, hook declarations."""
