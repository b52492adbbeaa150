//! A page of everything that was found.

use std::borrow::Cow;

use super::{Advised, Cell, Chapter, Claims, Part};
use crate::{Fact, Notice};

/// A page, from the top down.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What its window is called.
    pub title: String,
    /// What it is of; a tone makes it a verdict.
    pub heading: Cell,
    /// The directory that was measured in, or what was proven; empty where there are several.
    pub subject: String,
    /// On what and when it was found, in short pieces.
    pub circumstances: Vec<String>,
    /// Under what, by which plans and how often, in short pieces.
    pub plans: Vec<String>,
    /// The verdict, in sentences.
    pub sentences: Vec<String>,
    /// The picture that belongs to the verdict: cost against safety, or what a power cut left.
    pub front: Option<Chapter>,
    /// Published claims.
    pub claims: Claims,
    /// What is advised.
    pub advised: Advised,
    /// What must be known before a figure is believed.
    pub notices: Vec<Notice>,
    /// One for each experiment, or run of one.
    pub parts: Vec<Part>,
    /// What the facts are of, as their heading; without facts there is none.
    pub foundation: String,
    /// What is known of the machine and the filesystem; those of one subject stand together.
    pub facts: Vec<Fact>,
    /// What a user types to repeat the run.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// The version of the results document.
    pub schema: String,
    /// The file beside the page that has more, and what it has: `results.json`, `every trial`.
    pub document: (Cow<'static, str>, Cow<'static, str>),
}
