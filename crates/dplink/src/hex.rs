//! Numbers that name something: where people read them as they see them, as readers of JSON round numbers above 2^53.
//! Elsewhere they are numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// `serialize_with` of a field.
pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => serializer.collect_str(&format_args!("{number:#018x}")),
        false => number.serialize(serializer),
    }
}

/// `deserialize_with` of a field.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    if !deserializer.is_human_readable() {
        return u64::deserialize(deserializer);
    }
    let text = String::deserialize(deserializer)?;
    let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| de::Error::custom("this number is hexadecimal after 0x"))
}
