//! Numbers of the ELF specifications and their names, each written once.
