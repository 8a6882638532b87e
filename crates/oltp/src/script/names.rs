//! Names of variables, and where their values are: all scripts of a run share the numbers.

use std::collections::HashMap;

use super::tokens::name_length;

/// Variables of a run.
const VARIABLES_MAX: usize = 10_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Names(HashMap<String, u16>);

impl Names {
    /// The number of a variable, which is new if it was not met before.
    pub(crate) fn slot(&mut self, name: &str) -> Result<u16, String> {
        if let Some(slot) = self.0.get(name) {
            return Ok(*slot);
        }
        if !is_name(name.as_bytes()) {
            return Err(format!("invalid variable name ({name})"));
        }
        if self.0.len() == VARIABLES_MAX {
            return Err(format!("the scripts have more than {VARIABLES_MAX} variables"));
        }
        let slot = self.0.len() as u16;
        self.0.insert(name.into(), slot);
        Ok(slot)
    }

    /// The number of a variable that a script reads or sets.
    pub(crate) fn find(&self, name: &str) -> Option<u16> {
        self.0.get(name).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All names by number.
    pub(crate) fn by_slot(&self) -> Vec<String> {
        let mut names = vec![String::new(); self.len()];
        self.0.iter().for_each(|(name, slot)| names[usize::from(*slot)].clone_from(name));
        names
    }
}

/// Whether a variable may be called so.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}
