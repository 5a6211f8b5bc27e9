//! `[charging]`: what is charged, when records are closed, and where they go.

use super::values::{Age, Cdrs, Containers, FileAge, FileKib, FreeMb, RecordBytes, Waiting};
use ::charging::file::Format;
use ::charging::{Key, Policy, Rating, Zone};
use config::{Refusal, Spanned};
use n4::{Charging, Predefined};
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Tariff times of a day.
const TARIFF_TIMES_MAX: usize = 24;
/// Ranges of URRs.
const URRS_MAX: usize = 1_024;
/// Keys of content rules. A session has a PDR more of each for every one that is split, and a meter.
const CONTENT_MAX: usize = 64;

/// `[charging]`.
#[derive(Debug)]
pub(crate) struct ChargingSettings {
    /// What the PFCP node does.
    pub(crate) offline: Charging,
    pub(crate) directory: PathBuf,
    pub(crate) formats: Vec<Format>,
    pub(crate) file_age: Duration,
    pub(crate) file_cdrs: usize,
    pub(crate) file_bytes: usize,
    pub(crate) waiting_max: usize,
    pub(crate) min_free_bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    directory: Spanned<PathBuf>,
    formats: Spanned<Vec<Format>>,
    default_rating_group: Option<u32>,
    default_service_id: Option<Spanned<u32>>,
    #[serde(default)]
    record_max_s: Age,
    #[serde(default)]
    record_max_bytes: RecordBytes,
    #[serde(default)]
    record_max_containers: Containers,
    #[serde(default)]
    tariff_times: Vec<Spanned<TimeOfDay>>,
    utc_offset: Option<UtcOffset>,
    time_zone: Option<Spanned<TimeZone>>,
    #[serde(default)]
    file_max_s: FileAge,
    #[serde(default)]
    file_max_cdrs: Cdrs,
    #[serde(default)]
    file_max_kib: FileKib,
    #[serde(default)]
    waiting_max: Waiting,
    #[serde(default)]
    min_free_mb: FreeMb,
    #[serde(default)]
    urr: Vec<Urr>,
    #[serde(default)]
    content: Vec<Content>,
}

/// What flows are charged under if their content rules say so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    rating_group: u32,
    service_id: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Urr {
    first: Spanned<u32>,
    last: Option<Spanned<u32>>,
    rating_group: u32,
    service_id: Option<u32>,
}

impl Urr {
    fn end(&self) -> u32 {
        *self.last.as_ref().unwrap_or(&self.first).get_ref()
    }
}

/// Minutes since midnight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct TimeOfDay(u32);

impl TryFrom<String> for TimeOfDay {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let (hours, minutes) = clock(&text).ok_or("a tariff time reads like \"06:30\"")?;
        (hours < 24).then_some(Self(hours * 60 + minutes)).ok_or("a tariff time is 00:00 to 23:59")
    }
}

/// Minutes ahead of UTC.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct UtcOffset(i32);

/// By its name.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
struct TimeZone(Zone);

impl TryFrom<String> for TimeZone {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let why =
            || format!("no time zone is called {name:?}; names are those of IANA, as \"Europe/Berlin\"");
        Zone::named(&name).map(Self).ok_or_else(why)
    }
}

impl TryFrom<String> for UtcOffset {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        const SHAPE: &str = "a distance from UTC reads like \"+02:00\" or \"-05:30\", at most 14 hours";
        let sign = match text.chars().next() {
            Some('+') => 1,
            Some('-') => -1,
            _ => return Err(SHAPE),
        };
        let (hours, minutes) = text.get(1..).and_then(clock).ok_or(SHAPE)?;
        let minutes = i32::try_from(hours * 60 + minutes).map_err(|_| SHAPE)?;
        (minutes <= 14 * 60).then_some(Self(sign * minutes)).ok_or(SHAPE)
    }
}

/// Hours, of two digits, and minutes.
fn clock(text: &str) -> Option<(u32, u32)> {
    let (hours, minutes) = text.split_once(':')?;
    let is_number = |text: &str| text.len() == 2 && text.bytes().all(|octet| octet.is_ascii_digit());
    let number = |text: &str| if is_number(text) { text.parse().ok() } else { None };
    let (hours, minutes): (u32, u32) = (number(hours)?, number(minutes)?);
    (minutes < 60).then_some((hours, minutes))
}

/// Makes settings of values that fit together.
pub(super) fn check(file: File, predefined: &Predefined) -> Result<ChargingSettings, Refusal> {
    super::file::check_named(&file.directory)?;
    check_formats(&file.formats)?;
    check_apart(&file.urr)?;
    if let (None, Some(service_id)) = (file.default_rating_group, &file.default_service_id) {
        return Err(Refusal::of(service_id, "it belongs to default_rating_group, which is not there"));
    }
    if file.urr.len() > URRS_MAX {
        return Err(Refusal::absent(format!("more than {URRS_MAX} [[charging.urr]]")));
    }
    let default = file.default_rating_group.map(|rating_group| Key {
        rating_group,
        service_id: file.default_service_id.as_ref().map(|service_id| *service_id.get_ref()),
    });
    if file.content.len() > CONTENT_MAX {
        return Err(Refusal::absent(format!("more than {CONTENT_MAX} [[charging.content]]")));
    }
    let key = |content: &Content| Key { rating_group: content.rating_group, service_id: content.service_id };
    let content: Vec<Key> = file.content.iter().map(key).collect();
    let is_twice = |(at, key): (usize, &Key)| content.iter().skip(at + 1).any(|other| other == key);
    if let Some((_, key)) = content.iter().enumerate().find(|one| is_twice(*one)) {
        let group = key.rating_group;
        return Err(Refusal::absent(format!(
            "[[charging.content]] of rating group {group} stands there twice"
        )));
    }
    let mapped = file.urr.iter().map(range).collect::<Result<_, _>>()?;
    let rating = Rating::new(default, mapped, predefined.keys().chain(content.iter().copied()));
    let rating = rating.map_err(|error| Refusal::absent(format!("[charging]: {error}")))?;
    let rating = rating.with_content(content);
    let policy = policy(&file)?;
    check_waiting(&file)?;
    Ok(ChargingSettings {
        offline: Charging { rating, policy },
        directory: file.directory.into_inner(),
        formats: file.formats.into_inner(),
        file_age: Duration::from_secs(file.file_max_s.0),
        file_cdrs: file.file_max_cdrs.0,
        file_bytes: file.file_max_kib.0 << 10,
        waiting_max: file.waiting_max.0,
        min_free_bytes: file.min_free_mb.0 << 20,
    })
}

fn check_formats(formats: &Spanned<Vec<Format>>) -> Result<(), Refusal> {
    let given = formats.get_ref();
    let is_twice = |(at, format): (usize, &Format)| given.iter().skip(at + 1).any(|other| other == format);
    if given.is_empty() || given.iter().enumerate().any(is_twice) {
        return Err(Refusal::of(
            formats,
            "formats are \"pgw\", \"chf\" and \"json\", each once, one at least",
        ));
    }
    Ok(())
}

/// Records are in the database until they are in a file, and others come while it is written.
fn check_waiting(file: &File) -> Result<(), Refusal> {
    let (waiting_max, file_max_cdrs) = (file.waiting_max.0, file.file_max_cdrs.0);
    if waiting_max > file_max_cdrs {
        return Ok(());
    }
    Err(Refusal::absent(format!(
        "[charging]: waiting_max = {waiting_max} has to be more than file_max_cdrs = {file_max_cdrs}, or records are lost \
         before a file has as many"
    )))
}

fn range(urr: &Urr) -> Result<(RangeInclusive<u32>, Key), Refusal> {
    let key = Key { rating_group: urr.rating_group, service_id: urr.service_id };
    match &urr.last {
        Some(last) if *last.get_ref() < *urr.first.get_ref() => {
            Err(Refusal::of(last, "it is before the first"))
        }
        _ => Ok((*urr.first.get_ref()..=urr.end(), key)),
    }
}

/// Of a URR that two ranges have, nobody could say under which key it is charged.
fn check_apart(urrs: &[Urr]) -> Result<(), Refusal> {
    let mut sorted: Vec<&Urr> = urrs.iter().collect();
    sorted.sort_by_key(|urr| *urr.first.get_ref());
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    let Some((before, urr)) = pairs.find(|(before, next)| *next.first.get_ref() <= before.end()) else {
        return Ok(());
    };
    let (first, last) = (before.first.get_ref(), before.end());
    Err(Refusal::of(&urr.first, format!("another [[charging.urr]] is of URRs {first} to {last}")))
}

fn policy(file: &File) -> Result<Policy, Refusal> {
    if let Some(excess) = file.tariff_times.get(TARIFF_TIMES_MAX) {
        return Err(Refusal::of(excess, "a day has at most 24 tariff times"));
    }
    let mut tariff_minutes: Vec<u32> = file.tariff_times.iter().map(|time| time.get_ref().0).collect();
    tariff_minutes.sort_unstable();
    tariff_minutes.dedup();
    let zone = match (&file.utc_offset, &file.time_zone) {
        (Some(_), Some(zone)) => {
            return Err(Refusal::of(zone, "utc_offset stands beside it; only one can be"));
        }
        (Some(offset), None) => Zone::Fixed(offset.0),
        (None, Some(zone)) => zone.get_ref().0.clone(),
        (None, None) => Zone::default(),
    };
    Ok(Policy {
        time_limit_ms: file.record_max_s.0 * 1_000,
        volume_limit_bytes: file.record_max_bytes.0,
        containers: file.record_max_containers.0,
        tariff_minutes,
        zone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ChargingSettings, config::ConfigError> {
        config::parse(text, |file| check(file, &Predefined::default()))
    }

    const LEAST: &str = "directory = \"/cdr\"\nformats = [\"json\"]\n";

    #[test]
    fn little_has_to_be_said() {
        let settings = parse(LEAST).unwrap();
        assert_eq!((settings.formats, settings.file_cdrs), (vec![Format::Json], 10_000));
        assert_eq!(settings.offline.rating, Rating::default());
        assert_eq!(settings.offline.policy, Policy::default());
    }

    #[test]
    fn all_can_be_said() {
        let text = "directory = \"/cdr\"\nformats = [\"pgw\", \"chf\"]\ndefault_rating_group = 1\n\
                    tariff_times = [\"22:00\", \"06:30\"]\nutc_offset = \"-05:30\"\nfile_max_kib = 1\n\
                    [[urr]]\nfirst = 10\nlast = 19\nrating_group = 7\nservice_id = 3\n\
                    [[content]]\nrating_group = 8\n[[content]]\nrating_group = 7\nservice_id = 4\n";
        let settings = parse(text).unwrap();
        let policy = settings.offline.policy;
        assert_eq!((policy.tariff_minutes, policy.zone), (vec![390, 1_320], Zone::Fixed(-330)));
        let mapped = settings.offline.rating.key_of(15);
        assert_eq!(mapped, Some(Key { rating_group: 7, service_id: Some(3) }));
        assert_eq!(settings.file_bytes, 1_024);
        let content = [(7, Some(4)), (8, None)];
        let content = content.map(|(rating_group, service_id)| Key { rating_group, service_id });
        assert_eq!(settings.offline.rating.content(), content);
        assert!(content.iter().all(|key| settings.offline.rating.own_meter(*key).is_some()));
    }

    #[test]
    fn a_place_has_its_time() {
        let settings = parse(&format!("{LEAST}time_zone = \"Europe/Berlin\"\n")).unwrap();
        assert_eq!(Some(settings.offline.policy.zone), Zone::named("Europe/Berlin"));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (line, expected) in [
            ("tariff_times = [\"6:30\"]", "a tariff time reads like"),
            ("tariff_times = [\"+6:+3\"]", "a tariff time reads like"),
            ("tariff_times = [\"24:00\"]", "a tariff time is 00:00 to 23:59"),
            ("utc_offset = \"2h\"", "a distance from UTC reads like"),
            (
                "time_zone = \"Europe/Nowhere\"",
                "line 3: time_zone = \"Europe/Nowhere\": no time zone is called \"Europe/Nowhere\"",
            ),
            ("time_zone = \"Europe/Berlin\"\nutc_offset = \"+01:00\"", "utc_offset stands beside it"),
            ("default_service_id = 3", "it belongs to default_rating_group"),
            ("record_max_s = 5", "a record is closed after 60 to"),
            ("[[urr]]\nfirst = 9\nlast = 8\nrating_group = 1", "it is before the first"),
            (
                "[[urr]]\nfirst = 9\nrating_group = 1\n[[urr]]\nfirst = 1\nlast = 9\nrating_group = 2",
                "line 4: first = 9: another [[charging.urr]] is of URRs 1 to 9",
            ),
            ("[[content]]\nrating_group = 9\n[[content]]\nrating_group = 9", "stands there twice"),
        ] {
            let error = parse(&format!("{LEAST}{line}\n")).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let both = "waiting_max = 1000 has to be more than file_max_cdrs = 10000";
        for (lines, is_right) in [("", false), ("file_max_cdrs = 999\n", true)] {
            let refused = parse(&format!("{LEAST}waiting_max = 1000\n{lines}")).err();
            assert_eq!(refused.map(|error| error.to_string().contains(both)), (!is_right).then_some(true));
        }
        let nowhere = parse("directory = \"\"\nformats = [\"json\"]\n").unwrap_err().to_string();
        assert!(nowhere.ends_with("line 1: directory = \"\": this is the name of a folder"), "{nowhere}");
        let error = parse("directory = \"/cdr\"\nformats = [\"pgw\", \"pgw\"]\n").unwrap_err().to_string();
        assert!(error.contains("each once"), "{error}");
    }
}
