"""An environment: parameters, the resource registry, hook declarations, event sinks."""
