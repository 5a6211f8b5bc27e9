//! Names that the node knows: where one is misspelt, which there are. Of applications and predefined rules the control plane engine is
//! asked: without one, names are taken as they are, and rules have none.

use crate::cpe::control::{self, Done, Order};
use crate::exit;
use crate::settings::Settings;
use dplink::Explanation;
use n4::ComesOf;
use rules::{ApplicationId, Instance, Interface};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// An engine that is there answers at once, and what it says here is of little weight.
const PATIENCE: Duration = Duration::from_secs(1);
/// Names told to people.
const SHOWN: usize = 20;

/// The network instance of a name that a port has; where none is given, the default one, or where users can be of no other, the only one.
pub(super) fn instance(settings: &Settings, name: Option<&str>) -> anyhow::Result<Instance> {
    let known = settings.dpe.network_instances();
    let Some(name) = name else {
        let networks = settings.dpe.ports.iter().filter(|port| port.interface != Interface::Access);
        let names: BTreeSet<Option<&str>> = networks.map(|port| port.network_instance.as_deref()).collect();
        return match (names.first(), names.len()) {
            (Some(None) | None, _) => Ok(Instance::DEFAULT),
            (Some(Some(name)), 1) => Ok(Instance::of(name)),
            _ => {
                let why = "each network has addresses of its own: name the user's by --network-instance";
                Err(unknown(why.to_owned(), &known))
            }
        };
    };
    match known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        true => Ok(Instance::of(name)),
        false => Err(unknown(format!("no port is of network instance {name}"), &known)),
    }
}

/// Refuses an application that rules of the node cannot be about.
pub(super) async fn check_application(control: &Path, name: &ApplicationId) -> anyhow::Result<()> {
    let Some(known) = ask(control, Order::Applications).await.applications else { return Ok(()) };
    if known.contains(name.name()) {
        return Ok(());
    }
    let known: Vec<String> = known.into_iter().collect();
    Err(unknown(format!("no application of the node's rules is called {name}"), &known))
}

/// Of which predefined rules the PDRs come that an explanation tells of.
pub(super) async fn come_of(control: &Path, explanation: &Explanation) -> Vec<ComesOf> {
    let tried = explanation.tried.iter().map(|(pdr, _)| *pdr);
    let told: Vec<_> = tried.chain(explanation.pdr).collect();
    let Some(session) = explanation.session.filter(|_| !told.is_empty()) else { return vec![] };
    let mut come_of = ask(control, Order::ComeOfPredefined(session)).await.come_of;
    come_of.retain(|it| told.contains(&it.pdr));
    come_of
}

async fn ask(control: &Path, order: Order) -> Done {
    let asked = timeout(PATIENCE, control::order(control, order)).await;
    asked.ok().and_then(Result::ok).unwrap_or_default()
}

fn unknown(why: String, known: &[String]) -> anyhow::Error {
    let shown = known.get(..SHOWN).unwrap_or(known).join(", ");
    let there_are = match known.len().saturating_sub(SHOWN) {
        0 if known.is_empty() => "there is none".to_owned(),
        0 => format!("there are {shown}"),
        more => format!("there are {shown} and {more} more"),
    };
    exit::unusable(anyhow::anyhow!("{why}; {there_are}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpe::control::Control;
    use rules::{PdrId, Seid};

    #[test]
    fn a_network_instance_that_no_port_has_is_refused_with_those_there_are() {
        let mut settings = Settings::parse(include_str!("../../../../config/upf.toml")).unwrap();
        let all = |settings: &mut Settings, name: Option<&str>| {
            settings.dpe.ports.iter_mut().for_each(|port| port.network_instance = name.map(str::to_owned));
        };
        all(&mut settings, Some("internet"));
        assert_eq!(instance(&settings, None).unwrap(), Instance::of("internet"), "users are of no other");
        assert_eq!(instance(&settings, Some("Internet")).unwrap(), Instance::of("internet"));
        let error = instance(&settings, Some("intrnet")).unwrap_err().to_string();
        assert_eq!(error, "no port is of network instance intrnet; there are internet");
        let mut ims = settings.dpe.ports.clone();
        ims.iter_mut().for_each(|port| port.network_instance = Some("ims".to_owned()));
        settings.dpe.ports.extend(ims);
        let error = instance(&settings, None).unwrap_err().to_string();
        assert!(error.ends_with("name the user's by --network-instance; there are ims, internet"), "{error}");
        all(&mut settings, None);
        assert_eq!(instance(&settings, None).unwrap(), Instance::DEFAULT);
        let error = instance(&settings, Some("internet")).unwrap_err().to_string();
        assert!(error.ends_with("; there is none"), "{error}");
        let many: Vec<String> = (0..22).map(|number| number.to_string()).collect();
        assert!(unknown(String::new(), &many).to_string().ends_with(" 19 and 2 more"));
    }

    /// A node with applications, and a session with a predefined rule.
    async fn engine(mut control: Control) {
        loop {
            let (order, answer) = control.next().await;
            let ads = |pdr| ComesOf { pdr: PdrId(pdr), rule: "ads".to_owned(), drops: true };
            let done = match order {
                Order::Applications => Done {
                    applications: Some(["audio", "video"].map(str::to_owned).into()),
                    ..Done::default()
                },
                Order::ComeOfPredefined(Seid(1)) => {
                    Done { come_of: vec![ads(65_533), ads(65_534)], ..Done::default() }
                }
                _ => Done::default(),
            };
            answer.send(done).unwrap();
        }
    }

    #[test]
    fn the_control_plane_knows_names_and_need_not_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpe.sock");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let named = |name: &str| ApplicationId::new(name).unwrap();
        let explanation =
            Explanation { pdr: Some(PdrId(65_533)), ..super::super::explain::tests::explanation() };
        runtime.block_on(async {
            check_application(&path, &named("vidoe")).await.unwrap();
            assert_eq!(come_of(&path, &explanation).await, []);
            tokio::spawn(engine(Control::listen(&path).unwrap()));
            check_application(&path, &named("video")).await.unwrap();
            let error = check_application(&path, &named("vidoe")).await.unwrap_err().to_string();
            assert_eq!(error, "no application of the node's rules is called vidoe; there are audio, video");
            let rule = "ads".to_owned();
            let ads = ComesOf { pdr: PdrId(65_533), rule, drops: true };
            assert_eq!(come_of(&path, &explanation).await, [ads]);
        });
    }
}
