//! Values by number, whose numbers are used again.

use std::ops::{Index, IndexMut};

#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }

    /// Keeps a value; returns its number.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        match self.reuse() {
            Some(number) => {
                self[number] = value;
                number
            }
            None => {
                self.values.push(value);
                self.values.len() as u32 - 1
            }
        }
    }

    /// A free number, with the value that had it last.
    #[inline]
    pub(crate) fn reuse(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Frees a number for another value.
    #[inline]
    pub(crate) fn free(&mut self, number: u32) {
        self.free.push(number);
    }

    /// Whether all numbers are free.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.values.len()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}
