//! CHAP with MD5 (RFC 1994; RFC 7143, 12.1.3): each side proves that it knows a secret without saying it.

use md5::{Digest, Md5};

use crate::{
    config::{Access, Secret},
    text,
};

/// The algorithm that every initiator knows; those with SHA name it too.
const MD5: &str = "5";
const CHALLENGE_BYTES: usize = 16;
/// Largest challenge (RFC 7143, 12.1.3).
const CHALLENGE_MOST_BYTES: usize = 1024;

/// A challenge that waits for its answer.
pub(crate) struct Challenge {
    identifier: u8,
    challenge: [u8; CHALLENGE_BYTES],
}

/// Why a login ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The initiator does not know the secret, or says so in no way that is known.
    Unproven,
    /// A key is missing, or has a value that it cannot have.
    Malformed,
}

impl Challenge {
    /// Answers the initiator's list of algorithms.
    ///
    /// # Errors
    /// None of them is known.
    pub(crate) fn begin(algorithms: &str, answer: &mut Vec<u8>) -> Result<Self, Refusal> {
        if !algorithms.split(',').any(|algorithm| algorithm == MD5) {
            return Err(Refusal::Unproven);
        }
        let drawn: [u8; CHALLENGE_BYTES + 1] = random();
        let (identifier, challenge) = (drawn[0], std::array::from_fn(|at| drawn[at + 1]));
        text::put(answer, "CHAP_A", MD5);
        text::put(answer, "CHAP_I", &identifier.to_string());
        text::put(answer, "CHAP_C", &text::to_hex(&challenge));
        Ok(Self { identifier, challenge })
    }

    /// Checks what the initiator proves, and proves what it asks for.
    ///
    /// # Errors
    /// The initiator does not know the secret, or its answer is none.
    pub(crate) fn end<'a>(
        self,
        access: &Access,
        key: impl Fn(&str) -> Option<&'a str>,
        answer: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let wanted = access.chap.as_ref().ok_or(Refusal::Malformed)?;
        let name = key("CHAP_N").ok_or(Refusal::Malformed)?;
        let proof = key("CHAP_R").and_then(|proof| text::from_hex(proof, 16)).ok_or(Refusal::Malformed)?;
        let expected = proof_of(self.identifier, wanted, &self.challenge);
        // Every byte is looked at, so that the time tells nothing.
        let differs = proof.iter().zip(&expected).fold(0, |differs, (one, other)| differs | (one ^ other));
        if name != wanted.name || proof.len() != expected.len() || differs != 0 {
            return Err(Refusal::Unproven);
        }
        let Some(identifier) = key("CHAP_I") else { return Ok(()) };
        let identifier = text::number(identifier).and_then(|number| u8::try_from(number).ok());
        let challenge = key("CHAP_C").and_then(|value| text::from_hex(value, CHALLENGE_MOST_BYTES));
        let (Some(identifier), Some(challenge)) = (identifier, challenge) else { return Err(Refusal::Malformed) };
        // An initiator that sends the challenge back would have the target prove the initiator's secret.
        let mutual = access.mutual.as_ref().filter(|_| challenge != self.challenge).ok_or(Refusal::Unproven)?;
        text::put(answer, "CHAP_N", &mutual.name);
        text::put(answer, "CHAP_R", &text::to_hex(&proof_of(identifier, mutual, &challenge)));
        Ok(())
    }
}

fn proof_of(identifier: u8, secret: &Secret, challenge: &[u8]) -> [u8; 16] {
    let hash = Md5::new().chain_update([identifier]).chain_update(&secret.secret).chain_update(challenge);
    hash.finalize().into()
}

/// A short name for a longer one; it hides nothing.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// Draws bytes of the kernel's random numbers.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer has N bytes.
    let drawn = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    assert_eq!(drawn, N as isize, "the kernel draws so few bytes at once");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let secret = |name: &str, secret: &str| Some(Secret { name: name.into(), secret: secret.into() });
        Access {
            chap: secret("dba", "a secret of some length"),
            mutual: secret("array", "another"),
            ..Access::default()
        }
    }

    fn value(texts: &[u8], key: &str) -> Option<String> {
        let found = text::pairs(texts)?;
        found.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned())
    }

    fn proven(secret: &Secret, more: &[(&str, &str)]) -> (Result<(), Refusal>, Vec<u8>) {
        let (mut asked, mut answer) = (Vec::new(), Vec::new());
        let challenge = Challenge::begin("7,5", &mut asked).unwrap();
        let bytes = text::from_hex(&value(&asked, "CHAP_C").unwrap(), 16).unwrap();
        let proof = text::to_hex(&proof_of(value(&asked, "CHAP_I").unwrap().parse().unwrap(), secret, &bytes));
        let mut keys = vec![("CHAP_N", secret.name.as_str()), ("CHAP_R", proof.as_str())];
        keys.extend(more);
        let find = |key: &str| keys.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        (challenge.end(&access(), find, &mut answer), answer)
    }

    #[test]
    fn who_knows_the_secret_is_let_in_and_no_one_else() {
        let right = access().chap.unwrap();
        assert_eq!(proven(&right, &[]).0, Ok(()));
        let wrong = Secret { secret: b"a secret of some lengtH".to_vec(), ..right.clone() };
        assert_eq!(proven(&wrong, &[]).0, Err(Refusal::Unproven));
        assert_eq!(proven(&Secret { name: "root".into(), ..right }, &[]).0, Err(Refusal::Unproven));
    }

    #[test]
    fn the_target_proves_its_own_secret_when_asked() {
        let (done, answer) = proven(&access().chap.unwrap(), &[("CHAP_I", "9"), ("CHAP_C", "0x01020304")]);
        assert_eq!(done, Ok(()));
        let expected = proof_of(9, &access().mutual.unwrap(), &[1, 2, 3, 4]);
        assert_eq!(value(&answer, "CHAP_R"), Some(text::to_hex(&expected)));
    }

    #[test]
    fn unknown_algorithms_and_missing_keys_are_refused() {
        assert!(matches!(Challenge::begin("6,7", &mut Vec::new()), Err(Refusal::Unproven)));
        let challenge = Challenge::begin("5", &mut Vec::new()).unwrap();
        assert_eq!(challenge.end(&access(), |_| None, &mut Vec::new()), Err(Refusal::Malformed));
    }
}
