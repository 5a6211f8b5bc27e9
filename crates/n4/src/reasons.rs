//! Why an IE is not obeyed, where that is not for want of time, or what obeying it comes to: for who reads `docs/ie-support.md` and
//! expects another thing.

use pfcp::ie;

/// No rate is set aside for anybody by forwarding packets: those that are late for want of the radio's capacity are the
/// radio's. TS 23.501 5.7.2.5 has the (R)AN guarantee the GFBR, whose admission control knows what there is to give; of a GBR
/// flow a user plane holds the MFBR (5.7.1.8), and an SGW-U or PGW-U the MBR of a GBR bearer (TS 23.401 4.7.3), which come as
/// the QER's MBR.
const GUARANTEED: &str =
    "the radio access network guarantees this rate (TS 23.501 5.7.2.5); what is enforced here is the MBR";

/// What a policy does is the operator's to say (TS 29.244 8.2.23 carries its name alone).
const POLICIES: &str = "what leaves outside of tunnels goes to the next hop of the policy that has this name in the \
                        configuration, into a tunnel as without; other names are refused (cause 70), as is that of a \
                        policy of another network instance than the FAR";

/// By number.
pub(crate) const REASONS: &[(u16, &str)] = &[(ie::GBR, GUARANTEED), (ie::FORWARDING_POLICY, POLICIES)];
