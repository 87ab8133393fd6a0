//! What the items of a module speak of: paths, calls of a type's own functions, macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Item, ItemImpl, ItemMacro, ItemMod, ItemUse, Macro, Path};

use super::syntax::{Import, attributes, bare, flatten, is_test, type_name};

/// What is spoken of in a module, but for its submodules and tests.
#[derive(Default)]
pub(crate) struct Mentions {
    /// Paths, with their lines.
    pub(crate) paths: Vec<(Vec<String>, usize)>,
    /// Those in the tokens of macros, which may be seen from another module than where they stand.
    pub(crate) expanded: Vec<(Vec<String>, usize)>,
    /// Functions of a type, by the path of one and the name of the other: `self.f()`, `Self::f`.
    pub(crate) functions: Vec<(Vec<String>, String, usize)>,
    /// Macros that are called without a path.
    pub(crate) macros: Vec<(String, usize)>,
    /// Identifiers that stand alone in calls of macros between items.
    pub(crate) words: Vec<(String, usize)>,
    /// `use` inside of functions.
    pub(crate) imports: Vec<Import>,
    /// The type whose `impl` is being read.
    this: Option<String>,
    depth: usize,
}

/// What `items` speak of.
pub(crate) fn mentions(items: &[Item]) -> Mentions {
    let mut found = Mentions::default();
    for item in items {
        found.visit_item(item);
    }
    found
}

impl<'a> Visit<'a> for Mentions {
    fn visit_item(&mut self, item: &'a Item) {
        if !is_test(attributes(item)) {
            self.depth += 1;
            visit::visit_item(self, item);
            self.depth -= 1;
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    /// A module of its own.
    fn visit_item_mod(&mut self, _: &'a ItemMod) {}

    fn visit_item_use(&mut self, import: &'a ItemUse) {
        if self.depth > 1 {
            let line = import.use_token.span.start().line;
            flatten(&import.tree, &mut Vec::new(), line, &mut self.imports);
        }
    }

    fn visit_item_impl(&mut self, block: &'a ItemImpl) {
        let outer = self.this.take();
        self.this = type_name(&block.self_ty);
        visit::visit_item_impl(self, block);
        self.this = outer;
    }

    fn visit_item_macro(&mut self, call: &'a ItemMacro) {
        if call.ident.is_none() {
            self.alone(call.mac.tokens.clone());
        }
        visit::visit_item_macro(self, call);
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        if let Some(name) = call.path.get_ident() {
            self.macros.push((bare(name), name.span().start().line));
        } else {
            self.visit_path(&call.path);
        }
        self.tokens(call.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &'a ExprMethodCall) {
        if let Expr::Path(receiver) = &*call.receiver
            && receiver.path.is_ident("self")
            && let Some(this) = &self.this
        {
            let line = call.method.span().start().line;
            self.functions.push((vec![this.clone()], bare(&call.method), line));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a Path) {
        let segments: Vec<String> = path.segments.iter().map(|part| bare(&part.ident)).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        if path.leading_colon.is_none() {
            self.function(&segments, line);
            self.paths.push((segments, line));
        }
        visit::visit_path(self, path);
    }
}

impl Mentions {
    /// Notes the function that a path may name.
    fn function(&mut self, segments: &[String], line: usize) {
        if let Some((function, ty)) = segments.split_last()
            && let Some(first) = ty.first()
        {
            let this = if first == "Self" { self.this.clone() } else { None };
            let ty = this.map_or(ty.to_vec(), |this| vec![this]);
            self.functions.push((ty, function.clone(), line));
        }
    }

    /// The paths in the tokens of a macro. What follows a dot or belongs to a parameter of the macro is none.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons, mut before) = (0, 0, ' ');
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => {
                    path.push(bare(&ident));
                    (colons, before) = (0, ' ');
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    before = ':';
                }
                other => {
                    self.token_path(&mut path, line);
                    let was = before;
                    (colons, before) = (0, ' ');
                    match other {
                        TokenTree::Ident(ident)
                            if was != '.' && was != ':' && (was != '$' || ident == "crate") =>
                        {
                            line = ident.span().start().line;
                            path.push(bare(&ident));
                        }
                        TokenTree::Punct(punct) => before = punct.as_char(),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.token_path(&mut path, line);
    }

    fn token_path(&mut self, path: &mut Vec<String>, line: usize) {
        let path = std::mem::take(path);
        if path.len() > 1 || path.first().is_some_and(|name| name.starts_with(char::is_uppercase)) {
            self.function(&path, line);
            self.expanded.push((path, line));
        }
    }

    /// The identifiers in the tokens of a macro.
    fn alone(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    self.words.push((bare(&ident), ident.span().start().line));
                }
                TokenTree::Group(group) => self.alone(group.stream()),
                _ => {}
            }
        }
    }
}
