//! Parameters that both sides of a session agree on (RFC 7143, chapter 13).

use crate::text;

/// Data that an initiator may send in one unit.
pub(crate) const RECEIVED_MOST_BYTES: usize = 256 << 10;
const BURST_MOST_BYTES: usize = 1 << 20;
const FIRST_BURST_MOST_BYTES: usize = 256 << 10;
const READY_MOST: u32 = 8;

/// Agreed parameters of a session; the defaults are in RFC 7143.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    /// Whether all data of a write but immediate ones wait to be asked for.
    pub(crate) initial_ready: bool,
    pub(crate) immediate_data: bool,
    pub(crate) sent_most_bytes: usize,
    pub(crate) burst_bytes: usize,
    pub(crate) first_burst_bytes: usize,
    /// How many parts of one write are asked for at once.
    pub(crate) ready_most: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            initial_ready: true,
            immediate_data: true,
            sent_most_bytes: 8 << 10,
            burst_bytes: 256 << 10,
            first_burst_bytes: 64 << 10,
            ready_most: 1,
        }
    }
}

impl Parameters {
    /// Answers a key of the initiator's.
    ///
    /// Gives None if the value is none that the key can have.
    pub(crate) fn agree(&mut self, key: &str, value: &str, answer: &mut Vec<u8>) -> Option<()> {
        let size = |least: usize| bounded(value, least, (1 << 24) - 1);
        match key {
            "HeaderDigest" => self.header_digest = digest(key, value, answer)?,
            "DataDigest" => self.data_digest = digest(key, value, answer)?,
            "InitialR2T" => {
                // A yes of either side is one of both.
                self.initial_ready = yes(value)?;
                text::put(answer, key, no_or_yes(self.initial_ready));
            }
            "ImmediateData" => {
                self.immediate_data = yes(value)?;
                text::put(answer, key, no_or_yes(self.immediate_data));
            }
            "MaxRecvDataSegmentLength" => {
                // Each side says its own.
                self.sent_most_bytes = size(512)?;
                text::put(answer, key, &RECEIVED_MOST_BYTES.to_string());
            }
            "MaxBurstLength" => {
                self.burst_bytes = size(512)?.min(BURST_MOST_BYTES);
                text::put(answer, key, &self.burst_bytes.to_string());
            }
            "FirstBurstLength" => {
                self.first_burst_bytes = size(512)?.min(FIRST_BURST_MOST_BYTES);
                text::put(answer, key, &self.first_burst_bytes.to_string());
            }
            "MaxOutstandingR2T" => {
                self.ready_most = (bounded(value, 1, 65_535)? as u32).min(READY_MOST);
                text::put(answer, key, &self.ready_most.to_string());
            }
            "MaxConnections" => text::put(answer, key, &bounded(value, 1, 65_535)?.min(1).to_string()),
            // Neither is had here: sessions end with their connection.
            "ErrorRecoveryLevel" => bounded(value, 0, 2).map(|_| text::put(answer, key, "0"))?,
            "DefaultTime2Wait" => text::put(answer, key, &bounded(value, 0, 3600)?.max(2).to_string()),
            "DefaultTime2Retain" => bounded(value, 0, 3600).map(|_| text::put(answer, key, "0"))?,
            "DataPDUInOrder" | "DataSequenceInOrder" => {
                yes(value)?;
                text::put(answer, key, "Yes");
            }
            "IFMarker" | "OFMarker" => text::put(answer, key, "No"),
            "TaskReporting" => text::put(answer, key, "RFC3720"),
            _ => text::put(answer, key, "NotUnderstood"),
        }
        Some(())
    }

    /// Brings what depends on each other into order, once all is agreed.
    pub(crate) fn settle(&mut self) {
        self.first_burst_bytes = self.first_burst_bytes.min(self.burst_bytes);
    }
}

fn bounded(value: &str, least: usize, most: usize) -> Option<usize> {
    text::number(value).map(|number| number as usize).filter(|number| (least..=most).contains(number))
}

fn yes(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

fn no_or_yes(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

/// Takes the first that is known of an initiator's list, which is in the order of its wishes.
fn digest(key: &str, value: &str, answer: &mut Vec<u8>) -> Option<bool> {
    let chosen = value.split(',').find(|one| matches!(*one, "CRC32C" | "None"))?;
    text::put(answer, key, chosen);
    Some(chosen == "CRC32C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(keys: &[(&str, &str)]) -> Option<(Parameters, String)> {
        let (mut parameters, mut answer) = (Parameters::default(), Vec::new());
        for (key, value) in keys {
            parameters.agree(key, value, &mut answer)?;
        }
        parameters.settle();
        Some((parameters, String::from_utf8(answer).unwrap().replace('\0', " ")))
    }

    #[test]
    fn the_smaller_of_two_wishes_holds() {
        let asked = [("MaxBurstLength", "16776192"), ("FirstBurstLength", "262144"), ("MaxOutstandingR2T", "16")];
        let (found, answer) = agreed(&asked).unwrap();
        assert_eq!((found.burst_bytes, found.first_burst_bytes, found.ready_most), (1 << 20, 256 << 10, 8));
        assert_eq!(answer, "MaxBurstLength=1048576 FirstBurstLength=262144 MaxOutstandingR2T=8 ");
    }

    #[test]
    fn a_first_burst_is_no_longer_than_a_burst() {
        assert_eq!(agreed(&[("MaxBurstLength", "4096")]).unwrap().0.first_burst_bytes, 4096);
    }

    #[test]
    fn digests_are_taken_in_the_order_of_the_initiator() {
        assert!(agreed(&[("HeaderDigest", "CRC32C,None")]).unwrap().0.header_digest);
        assert!(!agreed(&[("DataDigest", "None,CRC32C")]).unwrap().0.data_digest);
        assert_eq!(agreed(&[("DataDigest", "MD5")]), None);
    }

    #[test]
    fn impossible_values_end_a_login_and_unknown_keys_do_not() {
        assert_eq!(agreed(&[("MaxBurstLength", "100")]), None);
        assert_eq!(agreed(&[("ImmediateData", "maybe")]), None);
        assert_eq!(agreed(&[("X-com.example.one", "1")]).unwrap().1, "X-com.example.one=NotUnderstood ");
    }
}
