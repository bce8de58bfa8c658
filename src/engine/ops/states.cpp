#include "engine/ops/rows.h"
#include "engine/ops/rules.h"

namespace halfwatt {
namespace {

Result<Types> as_said(const Node& node, Inputs) {
  return Types{{node.attributes.dtype("dtype"), node.attributes.shape("shape")}};
}

Result<Types> none(const Node&, Inputs) { return Types{}; }

}  // namespace

const OpDef kInput{Op::input, "input", NumericClass::source, 0, 0, as_said};
const OpDef kConstant{Op::constant, "constant", NumericClass::source, 0, 0, as_said};
const OpDef kRead{Op::read, "read", NumericClass::source, 0, 0, as_said};
const OpDef kWrite{Op::write, "write", NumericClass::source, 1, 1, none};

}  // namespace halfwatt
