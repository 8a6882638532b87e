//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), which knows one password and does not look at the client's proof.

use rustls::{
    SupportedCipherSuite,
    crypto::{ring::cipher_suite::TLS13_AES_128_GCM_SHA256, tls13::OkmBlock},
};

use crate::PASSWORD;

const SALT: &[u8] = b"salt of the test";

/// Whether the server proves that it knows the password.
#[derive(Clone, Copy)]
pub(crate) enum Proof {
    Right,
    Wrong,
    /// It says that all is well without any.
    Missing,
}

pub(crate) struct Exchange {
    client_first: String,
    first: String,
}

impl Exchange {
    /// Begins with the client's first message, without its header.
    pub(crate) fn new(client_first: &str) -> Self {
        let nonce = client_first.split_once("r=").unwrap().1;
        let first = format!("r={nonce}server,s={},i=1", to_base64(SALT));
        Self { client_first: client_first.into(), first }
    }

    pub(crate) fn first(&self) -> &str {
        &self.first
    }

    /// The server's last message, an answer to the client's last.
    pub(crate) fn last(&self, client_last: &str, proof: Proof) -> Option<String> {
        let password = match proof {
            Proof::Right => PASSWORD,
            Proof::Wrong => "another",
            Proof::Missing => return None,
        };
        let without_proof = client_last.rsplit_once(",p=").unwrap().0;
        let exchanged = format!("{},{},{without_proof}", self.client_first, self.first);
        // With one iteration the salted password is a single HMAC.
        let salted = hmac(password.as_bytes(), &[SALT, &[0, 0, 0, 1]].concat());
        let signature = hmac(&hmac(&salted, b"Server Key"), exchanged.as_bytes());
        Some(format!("v={}", to_base64(&signature)))
    }
}

/// HMAC-SHA-256, as TLS has it.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else { unreachable!("its name says so") };
    suite.hkdf_provider.hmac_sign(&OkmBlock::new(key), message).as_ref().to_vec()
}

fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        let digits = (0..=group.len()).map(|place| char::from(DIGITS[bits >> (18 - 6 * place) & 63]));
        text.extend(digits);
        text.extend((group.len()..3).map(|_| '='));
    }
    text
}
