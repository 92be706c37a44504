"""The tests of instar: a package, because a dependency installs one of the same name, which would win."""
