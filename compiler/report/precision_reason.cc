#include "compiler/report/precision_reason.h"

#include <array>

namespace mpc::compiler {
namespace {

struct Sentence {
  std::string_view reason; ///< what the reason begins with
  const char *meaning;
};

// The first match counts: longer beginnings stand before shorter ones.
constexpr std::array<Sentence, 24> sentences = {{
    {"level O0", "f32 throughout, but for what the user casts"},
    {"level O2", "everything is low but norms and losses"},
    {"level O3", "everything is low but losses"},
    {"norm kept f32", "norms compute in f32, with f32 parameters and statistics"},
    {"class allow", "matrix work gains from low precision"},
    {"class deny", "it loses too much in low precision"},
    {"class norm", "norms compute in f32, with f32 parameters and statistics"},
    {"class", "it has no floating result to run low"},
    {"list entry", "the user's lists say so"},
    {"ToFloat", "Cell::ToFloat of its Cell, or of one around it, beats the level"},
    {"loss", "losses compute in f32 at every level"},
    {"label", "it prepares labels, which never pass through a low type"},
    {"differentiated by", "the user differentiates by its result, which keeps its type"},
    {"differentiated value", "it belongs to the value that is differentiated: a loss written by hand is f32"},
    {"user cast", "the user's cast decides: its rounding stays, and what follows a cast to f32 stays f32"},
    {"infer rule", "arithmetic on what f32 operations give stays f32"},
    {"cut", "so that casts cost least; low where both types cost the same"},
    {"cost model: low precision does not pay", "its low form saves less on this device than its casts cost"},
    {"cost model", "its low form saves more on this device than its casts cost"},
    {"stored assignment", "an earlier compilation of this network decided, and every Program follows it"},
    {"backward", "a gradient has the types of the forward operation"},
    {"update, with", "optimizers compute in f32; this one unscales or clips as it reads the gradient"},
    {"update", "training steps and optimizers compute in f32"},
    {"", "it lies outside every network: types are as traced"},
}};

const char *nameOf(PrecisionRule rule) {
  switch (rule) {
  case PrecisionRule::UserCast:
    return "user cast";
  case PrecisionRule::ToFloat:
    return "ToFloat";
  case PrecisionRule::ListEntry:
    return "list entry";
  case PrecisionRule::Loss:
    return "loss";
  case PrecisionRule::Label:
    return "label";
  case PrecisionRule::DifferentiatedBy:
    return "differentiated by";
  case PrecisionRule::DifferentiatedValue:
    return "differentiated value";
  case PrecisionRule::Level:
    return "level";
  case PrecisionRule::NormKeptF32:
    return "norm kept f32";
  case PrecisionRule::Class:
    return "class";
  case PrecisionRule::StoredAssignment:
    return "stored assignment";
  case PrecisionRule::InferRule:
    return "infer rule";
  case PrecisionRule::Cut:
    return "cut";
  case PrecisionRule::LowPays:
    return "cost model";
  case PrecisionRule::LowDoesNotPay:
    return "cost model: low precision does not pay";
  }
  return "unknown";
}

// Whether the detail says which one the rule means: "level O2". Otherwise the detail is added to the rule: "cut, list
// entry ...".
bool takesName(PrecisionRule rule) {
  return rule == PrecisionRule::ToFloat || rule == PrecisionRule::ListEntry || rule == PrecisionRule::Level ||
         rule == PrecisionRule::Class;
}

bool beginsWith(std::string_view reason, std::string_view beginning) {
  return reason.substr(0, beginning.size()) == beginning;
}

} // namespace

std::string ReasonText(PrecisionAttr precision) {
  std::string text;
  for (PrecisionReasonAttr reason : precision.getReasons()) {
    text += text.empty() ? "" : "; ";
    text += nameOf(reason.getRule());
    if (!reason.getDetail().empty())
      text += (takesName(reason.getRule()) ? " " : ", ") + reason.getDetail().str();
  }
  return text + (precision.getFolded() ? " (folded)" : "");
}

std::string SayReason(std::string_view reason) {
  std::string text;
  for (const Sentence &known : sentences) {
    if (beginsWith(reason, known.reason)) {
      text = known.meaning;
      break;
    }
  }
  if (reason.find("(folded)") != std::string_view::npos)
    text += "; x and y are stored as their neighbours have them";
  if (!beginsWith(reason, "list entry") && reason.find(", list entry") != std::string_view::npos)
    text += "; the class is that of the user's list";
  return text;
}

bool IsPropagated(PrecisionAttr precision) {
  return IsCut(precision) || (precision && precision.getRule() == PrecisionRule::InferRule);
}

bool IsCut(PrecisionAttr precision) { return precision && precision.getRule() == PrecisionRule::Cut; }

} // namespace mpc::compiler
