// The picture of a run: what it holds, that it is XML, and that its size has a bound.
#include "frontend/train/training_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>

#include "frontend/train/plot_axis.h"
#include "frontend/train/plot_series.h"
#include "frontend/train/svg_plot.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using internal::PlotAxis;
using internal::PlotSeries;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReadAll;
using testing::TemporaryFolder;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Whether Python's reader of XML takes `svg`.
bool IsXml(const std::string& svg) {
  const TemporaryFolder folder;
  const std::string path = folder.Write("plot.svg", svg);
  return std::system(("python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' " + path).c_str()) == 0;
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<std::string> LabelsOf(const PlotAxis& axis) {
  std::vector<std::string> labels;
  for (const PlotAxis::Tick& tick : axis.ticks()) labels.push_back(tick.label);
  return labels;
}

/// Trains `steps` steps in epochs of `steps_per_epoch`. The loss of step n is 1/n, and each epoch is evaluated.
absl::Status Plot(TrainingPlot& plot, std::int64_t steps, std::int64_t steps_per_epoch) {
  const CallbackList callbacks = {plot};
  RunContext context;
  context.learning_rate = 0.1;
  callbacks.OnTrainBegin(context);
  while (context.global_step < steps && context.failure().ok()) {
    ++context.global_step;
    context.set_loss(1.0f / static_cast<float>(context.global_step));
    context.overflow = context.global_step % 1000 == 2;
    context.loss_scale = context.global_step < 3 ? 65536.0f : 32768.0f;
    callbacks.OnStepEnd(context);
    if (context.global_step % steps_per_epoch != 0) continue;
    context.set_eval_results({{"eval_accuracy", 0.75}, {"eval_loss", 0.5}, {"perplexity <&> \"x\"", 12}});
    callbacks.OnEpochEnd(context);
  }
  if (context.failure().ok()) callbacks.OnTrainEnd(context);
  return context.failure();
}

TEST(PlotAxis, TicksAreRoundNumbers) {
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kLinear, 0.03, 0.96}), ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1"));
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kLinear, -3, 12}), ElementsAre("-5", "0", "5", "10", "15"));
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kWhole, 0, 3}), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kWhole, 0, 675}), ElementsAre("0", "200", "400", "600"));
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kBinary, 1024, 8192}), ElementsAre("2¹⁰", "2¹¹", "2¹²", "2¹³"));
  EXPECT_THAT(LabelsOf({PlotAxis::Scale::kDecimal, 0.001, 10}), ElementsAre("0.001", "0.01", "0.1", "1", "10"));
  EXPECT_EQ(internal::PowerOfTwo(-7), "2⁻⁷");
}

TEST(PlotAxis, EveryRangeHasFewTicksInOrder) {
  for (const auto scale : {PlotAxis::Scale::kLinear, PlotAxis::Scale::kDecimal, PlotAxis::Scale::kBinary}) {
    for (const double low : {0.0, 5e-324, 1e-300, 1e-9, 0.3, 1.0, 1e16, 1e300}) {
      if (low < 1e-300 && scale != PlotAxis::Scale::kLinear) continue;
      for (const double factor : {1.0, 1 + 1e-15, 1.5, 1e4}) {
        const double high = std::min(low * factor, 1e300);
        const PlotAxis axis(scale, low, high);
        EXPECT_LE(axis.ticks().size(), 10u);
        EXPECT_GE(axis.ticks().size(), 2u) << low << " to " << high;
        double before = -1;
        for (const PlotAxis::Tick& tick : axis.ticks()) {
          EXPECT_GT(tick.place, before) << low << " to " << high;
          EXPECT_LE(tick.place, 1);
          before = tick.place;
        }
        EXPECT_LE(axis.PlaceOf(low), axis.PlaceOf(high));
      }
    }
  }
}

TEST(PlotSeries, KeepsMeanAndLimitsOfManySteps) {
  PlotSeries series;
  for (std::int64_t step = 1; step <= 100'000; ++step) series.Add(step, step % 2 == 0 ? 3 : 1);
  EXPECT_LE(series.bins().size(), PlotSeries::kMostBins);
  EXPECT_GE(series.bins().size(), PlotSeries::kMostBins / 4);
  EXPECT_EQ(series.count(), 100'000);
  EXPECT_EQ(series.bins().front().first_step, 1);
  EXPECT_EQ(series.bins().back().last_step, 100'000);
  for (const PlotSeries::Bin& bin : series.bins()) {
    EXPECT_EQ(bin.low, 1);
    EXPECT_EQ(bin.high, 3);
    EXPECT_NEAR(bin.mean, 2, 0.02);
  }
}

TEST(PlotSeries, ValuesThatAreNotFiniteAreCountedApart) {
  PlotSeries series;
  for (const double value : {kNan, HUGE_VAL, -HUGE_VAL, 1e301, 2.0}) series.Add(7, value);
  ASSERT_EQ(series.bins().size(), 1u);
  EXPECT_EQ(series.not_finite(), 4);
  EXPECT_EQ(series.count(), 1);
  EXPECT_EQ(series.last(), 2);
  EXPECT_EQ(series.bins()[0].high, 2);
}

TEST(TrainingPlot, DrawsWhatARunMeasured) {
  const TemporaryFolder folder;
  TrainingPlot plot({.filename = folder / "run.svg", .title = "lenet5 <digits>"});
  ASSERT_TRUE(Plot(plot, 6, 3).ok());
  const std::string svg = ReadAll(folder / "run.svg");
  EXPECT_TRUE(IsXml(svg));
  for (const char* text : {">loss<", ">training 0.1667<", ">eval_loss 0.5<", ">metrics<", ">eval_accuracy 0.75<",
                           ">perplexity &lt;&amp;&gt; \"x\"<", ">learning rate<", ">loss scale", ">step<",
                           ">1 step skipped<", ">lenet5 &lt;digits&gt;<", "2¹⁵"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  // Three results of two epochs.
  EXPECT_EQ(CountOf(svg, "<circle"), 6u);
  // Of one skipped step, in each of five panels.
  EXPECT_EQ(CountOf(svg, "class=\"skipped\""), 5u);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "something lies beside it";
  EXPECT_EQ(svg, plot.Svg());
}

TEST(TrainingPlot, IsWrittenAtTheEndOfEachEpoch) {
  const TemporaryFolder folder;
  class Reader : public Callback {
   public:
    explicit Reader(std::string path) : path_(std::move(path)) {}
    void OnEpochEnd(RunContext& context) override { contents.insert(ReadAll(path_)); }
    std::set<std::string> contents;

   private:
    std::string path_;
  } reader(folder / "run.svg");
  TrainingPlot plot({.filename = folder / "run.svg"});
  RunContext context;
  const CallbackList callbacks = {plot, reader};
  callbacks.OnTrainBegin(context);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.svg"));
  for (context.global_step = 1; context.global_step <= 3; ++context.global_step) {
    context.set_loss(2.0f);
    callbacks.OnStepEnd(context);
    callbacks.OnEpochEnd(context);
  }
  EXPECT_EQ(reader.contents.size(), 3u);
  EXPECT_EQ(reader.contents.count(""), 0u);
}

TEST(TrainingPlot, NoPointsAndOnePointAreDrawn) {
  TrainingPlot plot({.filename = "unwritten.svg"});
  EXPECT_TRUE(IsXml(plot.Svg()));
  EXPECT_THAT(plot.Svg(), Not(HasSubstr("nan")));
  RunContext context;
  context.global_step = 1;
  context.set_loss(0.0f);
  plot.OnStepEnd(context);
  EXPECT_TRUE(IsXml(plot.Svg()));
  EXPECT_THAT(plot.Svg(), HasSubstr("h0\""));
  EXPECT_THAT(plot.Svg(), Not(HasSubstr("nan")));
}

TEST(TrainingPlot, LossesThatAreNotFiniteAreGapsWithCrosses) {
  TrainingPlot plot({.filename = "unwritten.svg"});
  RunContext context;
  for (const float loss : {1.0f, 2.0f, NAN, HUGE_VALF, -HUGE_VALF, 3.0f, 2.0f}) {
    ++context.global_step;
    context.set_loss(loss);
    plot.OnStepEnd(context);
  }
  const std::string svg = plot.Svg();
  EXPECT_TRUE(IsXml(svg));
  EXPECT_EQ(CountOf(svg, "l6 6m0 -6l-6 6"), 3u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  // The loss begins twice, the scale once.
  EXPECT_EQ(CountOf(svg, "h0"), 3u);
  RunContext bad;
  TrainingPlot nothing({.filename = "unwritten.svg"});
  bad.global_step = 1;
  bad.set_loss(NAN);
  nothing.OnStepEnd(bad);
  EXPECT_TRUE(IsXml(nothing.Svg()));
}

TEST(TrainingPlot, LongRunsAreThinned) {
  const TemporaryFolder folder;
  TrainingPlot plot({.filename = folder / "run.svg"});
  ASSERT_TRUE(Plot(plot, 100'000, 50'000).ok());
  for (std::int64_t step = 100'001; step <= 103'000; ++step) {
    plot.AddEvaluation(step, {{"eval_accuracy", 0.5}, {"eval_loss", 2.0}});
  }
  const std::string svg = plot.Svg();
  EXPECT_LT(svg.size(), std::size_t{6 * 40} << 10) << "six lines";
  EXPECT_TRUE(IsXml(svg));
  EXPECT_THAT(svg, HasSubstr(">100 steps skipped<"));
  EXPECT_THAT(svg, HasSubstr("class=\"band f0\""));
  EXPECT_THAT(svg, HasSubstr(">loss, logarithmic<"));
}

TEST(TrainingPlot, AccumulatedBatchesAreNoSteps) {
  TrainingPlot plot({.filename = "unwritten.svg"});
  RunContext context;
  for (const std::int64_t step : {0, 0, 1, 1, 1, 2}) {
    context.global_step = step;
    context.set_loss(static_cast<float>(step));
    plot.OnStepEnd(context);
  }
  EXPECT_THAT(plot.Svg(), HasSubstr(">training 2<"));
  EXPECT_EQ(CountOf(plot.Svg(), "h0L"), 2u) << "two points of loss and of scale";
}

TEST(TrainingPlot, TakesEvaluationsOfOthers) {
  TrainingPlot plot({.filename = "unwritten.svg"});
  plot.AddEvaluation(5, {{"test accuracy", 0.5}});
  plot.AddEvaluation(9, {{"test accuracy", 0.625}});
  EXPECT_THAT(plot.Svg(), HasSubstr(">test accuracy 0.625<"));
  EXPECT_EQ(CountOf(plot.Svg(), "<circle"), 2u);
}

TEST(TrainingPlot, PlacesThatCannotBeWrittenAreFoundBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const auto refusal = [](const std::string& filename) {
    TrainingPlot plot({.filename = filename});
    RunContext context;
    plot.OnTrainBegin(context);
    return std::string(context.failure().message());
  };
  EXPECT_EQ(refusal(""), "TrainingPlot: filename is empty");
  EXPECT_EQ(refusal("run.png"), "TrainingPlot: a picture is written as .svg, got 'run.png'");
  EXPECT_THAT(refusal(folder / "missing/run.svg"), HasSubstr("missing/run.svg"));
  std::filesystem::create_directory(folder / "folder.svg");
  EXPECT_THAT(refusal(folder / "folder.svg"), HasSubstr("is a folder"));
}

TEST(XmlText, AnyBytesAreTextOfXml) {
  EXPECT_EQ(internal::XmlText("a<b>&\"é⁴𝄞"), "a&lt;b&gt;&amp;\"é⁴𝄞");
  EXPECT_EQ(internal::XmlText(std::string_view("\0\t\x1b\x7f\n", 5)), "?????");
  EXPECT_EQ(internal::XmlText("\xff\xc3x\xe2\x82|\xc0\xaf\xed\xa0\x80\xf5"),
            std::string("??x") + "??|" + std::string(6, '?'));
  EXPECT_EQ(internal::XmlText("\xef\xbf\xbf"), "???");
  EXPECT_LE(internal::XmlText(std::string(1000, '&')).size(), 300u);
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += {static_cast<char>(byte), 'x'};
  std::string document = "<svg>";
  for (std::size_t at = 0; at < every.size(); at += 50) document += internal::XmlText(every.substr(at));
  EXPECT_TRUE(IsXml(document + "</svg>"));
}

}  // namespace
}  // namespace mpc
