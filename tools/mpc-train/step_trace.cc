#include "tools/mpc-train/step_trace.h"

#include <algorithm>
#include <chrono>
#include <iostream>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

constexpr int kInstructionRow = 1;
constexpr int kHostRow = 2;
constexpr char kForward[] = "forward";
constexpr char kBackward[] = "backward";
constexpr char kUpdate[] = "update";

using Time = StepTiming::Time;

Time After(Time begin, double microseconds) {
  return begin + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double, std::micro>(microseconds));
}

double Microseconds(Time::duration duration) {
  return std::chrono::duration<double, std::micro>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration))
      .count();
}

Json TypesOf(const runtime::Program& program, const std::vector<runtime::ValueId>& values) {
  Json types = Json::array();
  for (const runtime::ValueId value : values) {
    types.push_back(value == runtime::kNoValue ? "unused"
                                               : program.values[static_cast<std::size_t>(value)].spec.ToString());
  }
  return types;
}

std::size_t BytesOf(const runtime::Program& program, const std::vector<runtime::ValueId>& values) {
  std::size_t bytes = 0;
  for (const runtime::ValueId value : values) {
    if (value != runtime::kNoValue) bytes += program.values[static_cast<std::size_t>(value)].spec.bytes();
  }
  return bytes;
}

Json Describe(const runtime::Program& program, std::size_t position) {
  const runtime::Instruction& instruction = program.step().instructions[position];
  return {{"kernel", instruction.kernel},
          {"cell", instruction.scope},
          {"phase", PhaseName(instruction.phase)},
          {"instruction", position},
          {"inputs", TypesOf(program, instruction.inputs)},
          {"outputs", TypesOf(program, instruction.outputs)},
          {"bytes_read", BytesOf(program, instruction.inputs)},
          {"bytes_written", BytesOf(program, instruction.outputs)},
          {"workspace_bytes", instruction.workspace_bytes}};
}

}  // namespace

absl::Status SaveTrace(const StepTrace& trace, const std::string& path, bool stopped) {
  const absl::Status saved = trace.Save(path);
  if (saved.ok() || !stopped) return saved;
  std::cerr << "warning: " << saved.message() << "\n";
  return absl::OkStatus();
}

std::vector<std::string> PartsOfStep(const runtime::Program& program) {
  std::vector<std::string> parts;
  std::string part = kForward;
  for (const runtime::Instruction& instruction : program.step().instructions) {
    switch (instruction.phase) {
      case Phase::kForward:
        part = kForward;
        break;
      case Phase::kBackward:
        part = kBackward;
        break;
      case Phase::kUnknown:
      case Phase::kScale:  // before the backward pass or behind it
        break;
      case Phase::kCheck:
      case Phase::kSkip:
      case Phase::kUnscale:
      case Phase::kClip:
      case Phase::kUpdate:
        part = kUpdate;
        break;
    }
    parts.push_back(part);
  }
  return parts;
}

StepTrace::StepTrace(std::string model, std::int64_t first, std::int64_t last)
    : model_(std::move(model)), first_(first), last_(last) {}

void StepTrace::AddEvent(const std::string& name, const std::string& category, int row, Time begin, Time end,
                         Json arguments) {
  events_.push_back({{"name", name},
                     {"cat", category},
                     {"ph", "X"},
                     {"ts", Microseconds(begin - origin_)},
                     {"dur", Microseconds(end - begin)},
                     {"pid", 1},
                     {"tid", row},
                     {"args", std::move(arguments)}});
}

void StepTrace::OnStepTimed(const StepTiming& timing) {
  if (traced_++ == 0) origin_ = timing.data_begin;
  const std::string step = absl::StrCat("step ", timing.global_step);
  const std::vector<std::string> parts = PartsOfStep(*timing.program);
  const std::vector<runtime::InstructionTime>& times = timing.instructions;
  const auto begin_of = [&](std::size_t i) { return After(timing.run_begin, times[i].begin_us); };
  const auto end_of = [&](std::size_t i) { return After(timing.run_begin, times[i].begin_us + times[i].duration_us); };
  const Time computing = times.empty() ? timing.run_begin : begin_of(0);
  const Time computed = times.empty() ? timing.run_end : std::max(end_of(times.size() - 1), computing);

  AddEvent(step, "step", kInstructionRow, computing, computed, Json::object());
  for (std::size_t first = 0; first < times.size();) {
    const std::string& part = parts[times[first].instruction];
    std::size_t end = first + 1;
    while (end < times.size() && parts[times[end].instruction] == part) ++end;
    AddEvent(part, "part", kInstructionRow, begin_of(first), end_of(end - 1), Json::object());
    for (; first < end; ++first) {
      const runtime::Instruction& instruction = timing.program->step().instructions[times[first].instruction];
      const std::string name =
          instruction.scope.empty() ? instruction.kernel : absl::StrCat(instruction.scope, " ", instruction.kernel);
      Json arguments = Describe(*timing.program, times[first].instruction);
      arguments["step"] = timing.global_step;
      AddEvent(name, part, kInstructionRow, begin_of(first), end_of(first), std::move(arguments));
    }
  }

  AddEvent(step, "step", kHostRow, timing.data_begin, timing.records_end, Json::object());
  AddEvent("data wait", "host", kHostRow, timing.data_begin, timing.data_end, Json::object());
  AddEvent("upload", "host", kHostRow, timing.run_begin, computing, Json::object());
  AddEvent("step", "host", kHostRow, computing, std::max(timing.run_end, computing), Json::object());
  AddEvent("records", "host", kHostRow, timing.records_begin, timing.records_end, Json::object());
}

absl::Status StepTrace::Save(const std::string& path) const {
  if (traced_ == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing was traced: --trace-steps=", first_, "-", last_, ", but the run had ", begun_, " steps"));
  }
  Json events = {{{"name", "process_name"}, {"ph", "M"}, {"pid", 1}, {"args", {{"name", "mpc-train " + model_}}}},
                 {{"name", "thread_name"},
                  {"ph", "M"},
                  {"pid", 1},
                  {"tid", kInstructionRow},
                  {"args", {{"name", "instructions"}}}},
                 {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", kHostRow}, {"args", {{"name", "host"}}}}};
  for (const Json& event : events_) events.push_back(event);
  return WriteJsonFile(path, {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

}  // namespace mpc::tools
