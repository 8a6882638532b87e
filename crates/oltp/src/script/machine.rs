//! State of a user that runs scripts: its variables, its random numbers, and the stack of the machine that evaluates.

use super::{
    expression::{Expression, Step},
    functions::{Function, apply},
    numbers::Stream,
    value::Value,
};

/// A variable: not set, a value, or a text whose value is found when an expression asks for it.
#[derive(Debug, Clone, Default)]
struct Variable {
    value: Option<Value>,
    text: Vec<u8>,
    is_text: bool,
}

/// The machine of one user.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    variables: Vec<Variable>,
    pub(crate) stream: Stream,
    stack: Vec<Value>,
}

impl Machine {
    pub(crate) fn new(variables: usize, seed: u64) -> Self {
        Self { variables: vec![Variable::default(); variables], stream: Stream::new(seed), stack: Vec::new() }
    }

    pub(crate) fn set(&mut self, slot: u16, value: Value) {
        let variable = &mut self.variables[usize::from(slot)];
        (variable.value, variable.is_text) = (Some(value), false);
    }

    pub(crate) fn set_text(&mut self, slot: u16, text: &[u8]) {
        let variable = &mut self.variables[usize::from(slot)];
        variable.text.clear();
        variable.text.extend_from_slice(text);
        (variable.value, variable.is_text) = (None, true);
    }

    /// Appends a variable as statements get it; false if it is not set.
    pub(crate) fn write(&self, slot: u16, out: &mut Vec<u8>) -> bool {
        let variable = &self.variables[usize::from(slot)];
        match variable.value {
            _ if variable.is_text => out.extend_from_slice(&variable.text),
            Some(value) => value.write(out),
            None => return false,
        }
        true
    }

    /// A variable's value.
    fn value(&mut self, slot: u16, names: &[String]) -> Result<Value, String> {
        let variable = &mut self.variables[usize::from(slot)];
        let name = || &names[usize::from(slot)];
        if let Some(value) = variable.value {
            return Ok(value);
        }
        if !variable.is_text {
            return Err(format!("undefined variable \"{}\"", name()));
        }
        let text = || String::from_utf8_lossy(&variable.text).into_owned();
        let typed = Value::of_text(&variable.text);
        let value = typed.map_err(|_| format!("malformed variable \"{}\" value: \"{}\"", name(), text()))?;
        variable.value = Some(value);
        Ok(value)
    }

    /// The value of an expression. `names` are those of the variables; `debug` gets the text of `debug()`.
    pub(crate) fn evaluate(
        &mut self,
        expression: &Expression,
        names: &[String],
        mut debug: impl FnMut(Value),
    ) -> Result<Value, String> {
        self.stack.clear();
        let steps = &expression.0;
        let mut next = 0;
        while let Some(step) = steps.get(next) {
            next += 1;
            match *step {
                Step::Push(value) => self.stack.push(value),
                Step::Variable(slot) => {
                    let value = self.value(slot, names)?;
                    self.stack.push(value);
                }
                Step::Call(function, count) => {
                    let first = self.stack.len() - usize::from(count);
                    let value = apply(function, &self.stack[first..], &mut self.stream)?;
                    if function == Function::Debug {
                        debug(value);
                    }
                    self.stack.truncate(first);
                    self.stack.push(value);
                }
                Step::Decide(decisive, skipped) => {
                    let left = self.pop();
                    if left == Value::Null || left.truth()? == decisive {
                        self.stack.push(left);
                        next += skipped as usize;
                    }
                }
                Step::Truth => {
                    let right = self.pop();
                    if right != Value::Null {
                        right.truth()?;
                    }
                    self.stack.push(right);
                }
                Step::SkipUnless(skipped) => {
                    if !self.pop().is_true() {
                        next += skipped as usize;
                    }
                }
                Step::Skip(skipped) => next += skipped as usize,
            }
        }
        Ok(self.pop())
    }

    fn pop(&mut self) -> Value {
        self.stack.pop().expect("each step finds what earlier ones left")
    }
}
