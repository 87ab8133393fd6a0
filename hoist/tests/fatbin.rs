//! `hoist fatbin` on the fixtures.
