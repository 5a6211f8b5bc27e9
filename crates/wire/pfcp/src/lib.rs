//! pfcp
