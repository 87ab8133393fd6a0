//! Types without a name (`impl Trait`), wherever they are in a signature.

use rustdoc_types::{
    AssocItemConstraintKind, FunctionSignature, GenericArg, GenericArgs, Term, Type,
};

/// Whether a function takes or returns one.
pub(super) fn is_in_signature(signature: &FunctionSignature) -> bool {
    let mut inputs = signature.inputs.iter().map(|(_, r#type)| r#type);
    inputs.any(is_in) || signature.output.as_ref().is_some_and(is_in)
}

fn is_in(r#type: &Type) -> bool {
    let in_args = |args: &Option<Box<GenericArgs>>| args.as_deref().is_some_and(is_in_arguments);
    match r#type {
        Type::ImplTrait(_) => true,
        Type::Generic(_) | Type::Primitive(_) | Type::Infer => false,
        Type::Tuple(parts) => parts.iter().any(is_in),
        Type::Slice(inner) => is_in(inner),
        Type::Array { type_, .. }
        | Type::Pat { type_, .. }
        | Type::RawPointer { type_, .. }
        | Type::BorrowedRef { type_, .. } => is_in(type_),
        Type::ResolvedPath(path) => in_args(&path.args),
        Type::DynTrait(it) => it.traits.iter().any(|one| in_args(&one.trait_.args)),
        Type::FunctionPointer(it) => is_in_signature(&it.sig),
        Type::QualifiedPath { args, self_type, .. } => in_args(args) || is_in(self_type),
    }
}

fn is_in_arguments(args: &GenericArgs) -> bool {
    match args {
        GenericArgs::AngleBracketed { args, constraints } => {
            args.iter().any(|it| matches!(it, GenericArg::Type(r#type) if is_in(r#type)))
                || constraints.iter().any(|it| match &it.binding {
                    AssocItemConstraintKind::Equality(Term::Type(r#type)) => is_in(r#type),
                    _ => false,
                })
        }
        GenericArgs::Parenthesized { inputs, output } => {
            inputs.iter().any(is_in) || output.as_ref().is_some_and(is_in)
        }
        GenericArgs::ReturnTypeNotation => false,
    }
}
