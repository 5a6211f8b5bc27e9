//! What packets of an application look like.

use super::take;
use crate::ErrorKind;
use crate::fields::Value;

/// PFD contents (TS 29.244 8.2.39), with all of several values that feature PFDE allows of one kind. Texts are octets as
/// they came: what they mean is the receiver's concern. Coded here: `rs-pfcp` does not know lists of values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PfdContents {
    /// Flow descriptions (TS 29.251 6.4.3.7).
    pub flow_descriptions: Vec<Vec<u8>>,
    /// URLs (TS 29.251 6.4.3.8).
    pub urls: Vec<Vec<u8>>,
    /// Domain names (TS 29.251 6.4.3.9).
    pub domain_names: Vec<DomainName>,
    /// What sender and receiver have agreed on.
    pub custom: Option<Vec<u8>>,
}

/// A domain name, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DomainName {
    /// A host name, or an expression for some.
    pub name: Vec<u8>,
    /// Where it is looked for (TS 29.122 5.14.2.2.4), where told; not empty.
    pub protocol: Option<Vec<u8>>,
}

const FD: u8 = 1;
const URL: u8 = 1 << 1;
const DN: u8 = 1 << 2;
const CP: u8 = 1 << 3;
const DNP: u8 = 1 << 4;
const AFD: u8 = 1 << 5;
const AURL: u8 = 1 << 6;
const ADNP: u8 = 1 << 7;

impl PfdContents {
    /// As on the wire.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.write(&mut octets);
        octets
    }

    /// Of what [`PfdContents::octets`] gave; `None` for anything that cannot be read.
    pub fn of_octets(octets: &[u8]) -> Option<Self> {
        Self::read(octets, crate::ie::PFD_CONTENTS).ok()
    }

    fn flags(&self) -> u8 {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let protocol = self.domain_names.first().is_some_and(|name| name.protocol.is_some());
        bit(!self.flow_descriptions.is_empty(), FD)
            | bit(!self.urls.is_empty(), URL)
            | bit(!self.domain_names.is_empty(), DN)
            | bit(self.custom.is_some(), CP)
            | bit(protocol, DNP)
            | bit(self.flow_descriptions.len() > 1, AFD)
            | bit(self.urls.len() > 1, AURL)
            | bit(self.domain_names.len() > 1, ADNP)
    }
}

impl Value for PfdContents {
    fn read(mut bytes: &[u8], ie: u16) -> Result<Self, ErrorKind> {
        let [flags] = take(&mut bytes, ie)?;
        // An octet without meaning yet follows the flags; nobody who says nothing needs it.
        let _ = take::<1>(&mut bytes, ie);
        let bytes = &mut bytes;
        let mut text = |bit: u8| {
            if flags & bit == 0 { Ok(None) } else { octets(bytes, ie).map(|text| Some(text.to_vec())) }
        };
        let (flow, url, name, custom, protocol) = (text(FD)?, text(URL)?, text(DN)?, text(CP)?, text(DNP)?);
        let mut list = |bit: u8| if flags & bit == 0 { Ok(&[][..]) } else { octets(bytes, ie) };
        let (flows, urls, names) = (list(AFD)?, list(AURL)?, list(ADNP)?);
        if name.is_none() && protocol.is_some() {
            return Err(ErrorKind::MandatoryIeIncorrect(ie));
        }
        let protocol = protocol.filter(|protocol| !protocol.is_empty());
        let mut domain_names: Vec<_> = name.map(|name| DomainName { name, protocol }).into_iter().collect();
        domain_names.append(&mut named(names, ie)?);
        Ok(Self {
            flow_descriptions: flow.into_iter().chain(texts(flows, ie)?).collect(),
            urls: url.into_iter().chain(texts(urls, ie)?).collect(),
            domain_names,
            custom,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.flags(), 0]);
        let first = self.domain_names.first();
        self.flow_descriptions.first().into_iter().for_each(|flow| put(flow, out));
        self.urls.first().into_iter().for_each(|url| put(url, out));
        first.into_iter().for_each(|name| put(&name.name, out));
        self.custom.iter().for_each(|custom| put(custom, out));
        first.and_then(|name| name.protocol.as_ref()).into_iter().for_each(|protocol| put(protocol, out));
        for list in [&self.flow_descriptions, &self.urls] {
            let mut others = Vec::new();
            list.iter().skip(1).for_each(|text| put(text, &mut others));
            put_list(&others, out);
        }
        let mut others = Vec::new();
        for DomainName { name, protocol } in self.domain_names.iter().skip(1) {
            put(name, &mut others);
            put(protocol.as_deref().unwrap_or_default(), &mut others);
        }
        put_list(&others, out);
    }
}

/// Octets behind their length.
fn octets<'a>(bytes: &mut &'a [u8], ie: u16) -> Result<&'a [u8], ErrorKind> {
    let length = usize::from(u16::from_be_bytes(take(bytes, ie)?));
    let (taken, rest) = bytes.split_at_checked(length).ok_or(ErrorKind::InvalidLength(ie))?;
    *bytes = rest;
    Ok(taken)
}

fn texts(mut list: &[u8], ie: u16) -> Result<Vec<Vec<u8>>, ErrorKind> {
    let mut texts = Vec::new();
    while !list.is_empty() {
        texts.push(octets(&mut list, ie)?.to_vec());
    }
    Ok(texts)
}

fn named(mut list: &[u8], ie: u16) -> Result<Vec<DomainName>, ErrorKind> {
    let mut names = Vec::new();
    while !list.is_empty() {
        let name = octets(&mut list, ie)?.to_vec();
        let protocol = octets(&mut list, ie)?;
        let protocol = (!protocol.is_empty()).then(|| protocol.to_vec());
        names.push(DomainName { name, protocol });
    }
    Ok(names)
}

/// What is longer than its length can tell makes an IE that is too long, which is left out whole.
fn put(text: &[u8], out: &mut Vec<u8>) {
    out.extend((text.len().min(usize::from(u16::MAX)) as u16).to_be_bytes());
    out.extend_from_slice(text);
}

fn put_list(list: &[u8], out: &mut Vec<u8>) {
    if !list.is_empty() {
        put(list, out);
    }
}
