//! Options that a client sends before it is served. No socket is touched here.

use std::sync::atomic::Ordering;

use crate::{
    shared::Shared,
    wire::{Asked, PAYLOAD_MOST_BYTES, PREFERRED_BYTES, can, info, option, option_reply, reply},
};

/// How a negotiation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The client is served this export from now on.
    Export(usize),
    /// The client goes.
    Over,
    /// The client asked for no export, in a way that knows no answer to it.
    NoExport,
}

/// A negotiation so far.
#[derive(Debug, Default)]
pub(crate) struct Negotiation {
    /// Whether replies to reads are structured.
    pub(crate) is_structured: bool,
    /// Whether 124 zeroes follow the answer to EXPORT_NAME.
    pub(crate) has_zeroes: bool,
}

impl Negotiation {
    /// Takes an option; gives what the client is answered, and whether that ends the negotiation.
    pub(crate) fn step(&mut self, shared: &Shared, option: u32, data: &[u8]) -> (Vec<u8>, Option<End>) {
        let answer = |kind: u32, what: &str| option_reply(option, kind, what.as_bytes());
        match option {
            option::EXPORT_NAME => match shared.named(data) {
                Some(export) => (self.export(shared, export), Some(End::Export(export))),
                None => (Vec::new(), Some(End::NoExport)),
            },
            option::ABORT => (answer(reply::DONE, ""), Some(End::Over)),
            option::LIST | option::STRUCTURED_REPLY if !data.is_empty() => {
                (answer(reply::INVALID, "this option has no data"), None)
            }
            option::LIST => (listed(shared), None),
            option::STRUCTURED_REPLY => {
                self.is_structured = true;
                (answer(reply::DONE, ""), None)
            }
            option::INFO | option::GO => {
                let Some(asked) = Asked::of(data) else {
                    return (answer(reply::INVALID, "the data are not as long as they say"), None);
                };
                let Some(export) = shared.named(asked.name) else {
                    return (answer(reply::UNKNOWN, "there is no such export; the list of exports names all"), None);
                };
                let is_go = option == option::GO;
                (self.told(shared, option, export, &asked.infos), is_go.then_some(End::Export(export)))
            }
            _ => (answer(reply::UNSUPPORTED, ""), None),
        }
    }

    fn flags(&self) -> u16 {
        if self.is_structured { can::ALWAYS | can::WHOLE_READS } else { can::ALWAYS }
    }

    /// Size and flags of an export.
    fn facts(&self, shared: &Shared, export: usize) -> [u8; 10] {
        let mut facts = [0; 10];
        facts[..8].copy_from_slice(&shared.exports[export].bytes.load(Ordering::Relaxed).to_be_bytes());
        facts[8..].copy_from_slice(&self.flags().to_be_bytes());
        facts
    }

    /// The answer to EXPORT_NAME.
    fn export(&self, shared: &Shared, export: usize) -> Vec<u8> {
        let mut bytes = self.facts(shared, export).to_vec();
        bytes.resize(bytes.len() + if self.has_zeroes { 124 } else { 0 }, 0);
        bytes
    }

    /// The answers to INFO and GO.
    fn told(&self, shared: &Shared, option: u32, export: usize, infos: &[u16]) -> Vec<u8> {
        let told =
            |info: u16, data: &[u8]| option_reply(option, reply::INFO, &[&info.to_be_bytes()[..], data].concat());
        let mut bytes = told(info::EXPORT, &self.facts(shared, export));
        if infos.contains(&info::NAME) {
            bytes.extend(told(info::NAME, shared.exports[export].name.as_bytes()));
        }
        if infos.contains(&info::BLOCK_SIZE) {
            let sizes = [1, PREFERRED_BYTES, PAYLOAD_MOST_BYTES];
            bytes.extend(told(info::BLOCK_SIZE, sizes.map(u32::to_be_bytes).as_flattened()));
        }
        bytes.extend(option_reply(option, reply::DONE, &[]));
        bytes
    }
}

fn listed(shared: &Shared) -> Vec<u8> {
    let mut bytes = Vec::new();
    for export in &shared.exports {
        let name = export.name.as_bytes();
        let data = [&(name.len() as u32).to_be_bytes()[..], name].concat();
        bytes.extend(option_reply(option::LIST, reply::SERVER, &data));
    }
    bytes.extend(option_reply(option::LIST, reply::DONE, &[]));
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_disk_server::Memory;
    use proptest::prelude::*;

    use super::*;
    use crate::shared::Export;

    fn shared(names: &[&str]) -> Shared {
        let export =
            |(volume, name): (usize, &&str)| Export { name: (*name).to_owned(), volume: volume as u16, bytes: 1 << 20 };
        let exports = names.iter().enumerate().map(export).collect();
        Shared::new(exports, Arc::new(Memory::zeroes(0)), assay_disk_server::Budget::new(1 << 20))
    }

    /// Kinds of the replies to an option.
    fn kinds(mut bytes: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        while let Some((header, rest)) = bytes.split_first_chunk::<20>() {
            found.push(u32::from_be_bytes(header[12..16].try_into().unwrap()));
            bytes = &rest[u32::from_be_bytes(header[16..].try_into().unwrap()) as usize..];
        }
        found
    }

    fn go(name: &str, infos: &[u16]) -> Vec<u8> {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.bytes());
        data.extend((infos.len() as u16).to_be_bytes());
        data.extend(infos.iter().flat_map(|info| info.to_be_bytes()));
        data
    }

    #[test]
    fn go_tells_what_was_asked_for_and_ends_the_negotiation() {
        let shared = shared(&["data01", "log01"]);
        let mut negotiation = Negotiation::default();
        let (bytes, end) = negotiation.step(&shared, option::GO, &go("log01", &[info::BLOCK_SIZE, 99]));
        assert_eq!((kinds(&bytes), end), (vec![reply::INFO, reply::INFO, reply::DONE], Some(End::Export(1))));
        assert_eq!(bytes[20..32], [0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 1, 0x6d]);
        assert_eq!(bytes[32 + 20..32 + 34], [0, 3, 0, 0, 0, 1, 0, 0, 0x10, 0, 2, 0, 0, 0]);
        let (_, end) = negotiation.step(&shared, option::INFO, &go("log01", &[]));
        assert_eq!(end, None);
        let (bytes, end) = negotiation.step(&shared, option::GO, &go("other", &[]));
        assert_eq!((kinds(&bytes), end), (vec![reply::UNKNOWN], None));
    }

    #[test]
    fn an_empty_name_is_the_only_export_and_none_of_several() {
        let empty = go("", &[]);
        let end = |names: &[&str]| Negotiation::default().step(&shared(names), option::GO, &empty).1;
        assert_eq!((end(&["data01"]), end(&["data01", "log01"])), (Some(End::Export(0)), None));
        let unnamed = Negotiation::default().step(&shared(&["a", "b"]), option::EXPORT_NAME, b"").1;
        assert_eq!(unnamed, Some(End::NoExport));
    }

    #[test]
    fn old_clients_are_told_size_and_flags_and_zeroes_unless_they_want_none() {
        let shared = shared(&["data01"]);
        let lengths = [true, false].map(|has_zeroes| {
            let mut negotiation = Negotiation { has_zeroes, is_structured: false };
            negotiation.step(&shared, option::EXPORT_NAME, b"data01").0.len()
        });
        assert_eq!(lengths, [134, 10]);
    }

    #[test]
    fn what_is_unknown_or_has_data_that_do_not_belong_is_refused_and_the_negotiation_goes_on() {
        let shared = shared(&["data01", "log01"]);
        let mut negotiation = Negotiation::default();
        let mut of = |number: u32, data: &[u8]| kinds(&negotiation.step(&shared, number, data).0);
        assert_eq!(of(option::LIST, b""), [reply::SERVER, reply::SERVER, reply::DONE]);
        assert_eq!(of(option::LIST, b"x"), [reply::INVALID]);
        assert_eq!(of(option::STRUCTURED_REPLY, b"x"), [reply::INVALID]);
        assert_eq!(of(option::GO, b"x"), [reply::INVALID]);
        // TLS, and contexts of metadata.
        assert_eq!([of(5, b""), of(10, b"x"), of(u32::MAX, b"")].concat(), [reply::UNSUPPORTED; 3]);
        assert_eq!(of(option::STRUCTURED_REPLY, b""), [reply::DONE]);
        assert!(negotiation.is_structured);
    }

    proptest! {
        #[test]
        fn any_option_is_answered_with_whole_replies_or_ends(number in 0u32..14, data: Vec<u8>) {
            let (bytes, end) = Negotiation::default().step(&shared(&["data01"]), number, &data);
            prop_assert!(end.is_some() || !kinds(&bytes).is_empty());
        }
    }
}
