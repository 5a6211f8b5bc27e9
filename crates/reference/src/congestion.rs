//! What a user's packet says of congestion when it comes out of a tunnel (RFC 6040 4.2), and a datagram that came in fragments
//! (RFC 3168 5.3).

use crate::ip;
use crate::reason::DropReason;

/// The two lowest bits of a type of service, or traffic class.
const NOT_ECT: u8 = 0;
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;
const CE: u8 = 3;

/// RFC 6040 figure 4. The rows are what arrives inside, the columns what the tunnel's header has: Not-ECT, ECT(0), ECT(1), CE.
const FIGURE_4: [(u8, [Option<u8>; 4]); 4] = [
    (NOT_ECT, [Some(NOT_ECT), Some(NOT_ECT), Some(NOT_ECT), None]),
    (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
    (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
    (CE, [Some(CE), Some(CE), Some(CE), Some(CE)]),
];
const COLUMNS: [u8; 4] = [NOT_ECT, ECT_0, ECT_1, CE];

/// A user's packet as it comes out of a tunnel whose header had this traffic class. What is no IP packet is left alone.
pub(crate) fn out_of_tunnel(outer_class: u8, inner: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut packet = inner.to_vec();
    let Some(header) = ip::read(inner) else { return Ok(packet) };
    let class = header.traffic_class;
    let row = FIGURE_4.iter().find(|(ecn, _)| *ecn == class & 3).map(|(_, row)| row);
    let column = COLUMNS.iter().position(|ecn| *ecn == outer_class & 3);
    let cell = row.zip(column).and_then(|(row, column)| row.get(column).copied()).flatten();
    let now = cell.ok_or(DropReason::NotEct)?;
    if now != class & 3 {
        ip::set_traffic_class(&mut packet, &header, class & !3 | now);
    }
    Ok(packet)
}

/// The traffic class of a datagram whose fragments had these.
pub(crate) fn of_fragments(classes: &[u8]) -> Result<u8, DropReason> {
    let is_there = |ecn: u8| classes.iter().any(|class| class & 3 == ecn);
    if is_there(CE) {
        return if is_there(NOT_ECT) { Err(DropReason::NotEct) } else { Ok(CE) };
    }
    let first = classes.first().map_or(NOT_ECT, |class| class & 3);
    let are_alike = classes.iter().all(|class| class & 3 == first);
    Ok(if are_alike { first } else { NOT_ECT })
}
