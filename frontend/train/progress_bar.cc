#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/train/callback.h"

namespace mpc {
namespace {

constexpr std::size_t kBarWidth = 30;

/// The descriptor behind a stream; -1: it is not known.
int DescriptorOf(const std::ostream* stream) {
  if (stream == &std::cout) return STDOUT_FILENO;
  return stream == &std::cerr ? STDERR_FILENO : -1;
}

double Seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

/// "0:23", "12:05", "1:02:03".
std::string FormatDuration(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::lround(seconds));
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  return hours > 0 ? absl::StrFormat("%d:%02d:%02d", hours, minutes, whole % 60)
                   : absl::StrFormat("%d:%02d", minutes, whole % 60);
}

std::string FormatResults(const RunContext& context) {
  std::string text;
  for (const auto& [name, value] : context.eval_results()) absl::StrAppend(&text, ", ", name, " ", FormatLoss(value));
  return text;
}

/// "[====>     ] ", `width` between the brackets; empty where that is too little.
std::string Bar(const RunContext& context, std::size_t width) {
  if (width < 3) return "";
  const auto steps = static_cast<std::size_t>(context.steps_per_epoch);
  const std::size_t filled = std::min(width, width * static_cast<std::size_t>(context.step_in_epoch) / steps);
  std::string bar(filled, '=');
  if (filled < width) bar.push_back('>');
  bar.resize(width, ' ');
  return absl::StrCat("[", bar, "] ");
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(options) {
  if (options_.stream == nullptr) options_.stream = &std::cout;
  const int descriptor = DescriptorOf(options_.stream);
  terminal_ = options_.terminal.value_or(descriptor >= 0 && isatty(descriptor) == 1);
}

void ProgressBar::OnTrainBegin(RunContext& context) {
  timed_.reset();
  steps_timed_ = 0;
  drawn_width_ = 0;
  // What is printed after a run that failed begins on a line of its own.
  context.KeepUntilEnd(std::shared_ptr<void>(nullptr, [this](void*) { EndLine(); }));
}

void ProgressBar::OnEpochBegin(RunContext& context) {
  epoch_begin_ = Clock::now();
  steps_before_ = context.step_in_epoch;
  last_drawn_ = Clock::time_point();
}

void ProgressBar::OnStepEnd(RunContext& context) {
  const Clock::time_point now = Clock::now();
  if (timed_.has_value()) {
    ++steps_timed_;
  } else {
    timed_ = now;  // the first step compiles
  }
  if (!terminal_ || now - last_drawn_ < options_.refresh) return;
  Draw(context);
  last_drawn_ = Clock::now();
}

void ProgressBar::OnEvalBegin(RunContext& context) {
  if (terminal_) Draw(context, ", evaluating");
  eval_begin_ = Clock::now();
}

void ProgressBar::OnEvalEnd(RunContext& context) { epoch_begin_ += Clock::now() - eval_begin_; }

void ProgressBar::OnEpochEnd(RunContext& context) {
  if (terminal_) {
    Draw(context, FormatResults(context));
    EndLine();
    return;
  }
  *options_.stream << "epoch " << context.epoch << "/" << context.epochs << ": " << context.step_in_epoch << " steps, "
                   << Numbers(context) << FormatResults(context) << std::endl;
}

std::string ProgressBar::Numbers(const RunContext& context) const {
  const double seconds = Seconds(Clock::now() - epoch_begin_);
  const auto steps = static_cast<double>(context.step_in_epoch - steps_before_);
  const std::string scale = context.loss_scale == 1.0f ? "" : absl::StrFormat(", scale %.10g", context.loss_scale);
  return absl::StrFormat("loss %s%s, %.0f steps/s", FormatLoss(context.loss()), scale, steps / std::max(seconds, 1e-9));
}

std::string ProgressBar::TimeLeft(const RunContext& context) const {
  const std::int64_t left = (context.epochs - context.epoch + 1) * context.steps_per_epoch - context.step_in_epoch;
  if (context.steps_per_epoch == 0 || left <= 0 || steps_timed_ == 0) return "";
  const double step_seconds = Seconds(Clock::now() - *timed_) / static_cast<double>(steps_timed_);
  return absl::StrCat(", ", FormatDuration(step_seconds * static_cast<double>(left)), " left");
}

std::size_t ProgressBar::Columns() const {
  if (options_.columns.has_value()) return static_cast<std::size_t>(std::max(*options_.columns, 1));
  winsize size{};
  const int descriptor = DescriptorOf(options_.stream);
  return descriptor >= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void ProgressBar::Draw(const RunContext& context, const std::string& ending) {
  const std::string begin = absl::StrCat("epoch ", context.epoch, "/", context.epochs, " ");
  const bool counted = context.steps_per_epoch > 0;
  const std::string end = absl::StrCat(counted ? absl::StrCat(context.step_in_epoch, "/", context.steps_per_epoch)
                                               : absl::StrCat("step ", context.step_in_epoch),
                                       " ", Numbers(context), ending, TimeLeft(context));
  // A line that is as wide as the terminal may already move the cursor to the next one.
  const std::size_t columns = Columns();
  const std::size_t most = columns == 0 ? std::string::npos : columns - 1;
  const std::size_t brackets = 3;
  const std::size_t others = begin.size() + end.size() + brackets;
  const std::size_t bar = most <= others ? 0 : std::min(kBarWidth, most - others);
  std::string line = absl::StrCat(begin, counted ? Bar(context, bar) : "", end);
  if (line.size() > most) line.resize(most);
  // Spaces erase the rest of a longer line before it.
  const std::size_t width = line.size();
  if (width < drawn_width_) line.append(std::min(drawn_width_, most) - width, ' ');
  drawn_width_ = width;
  *options_.stream << '\r' << line << std::flush;
}

void ProgressBar::EndLine() {
  if (drawn_width_ > 0) *options_.stream << std::endl;
  drawn_width_ = 0;
}

}  // namespace mpc
