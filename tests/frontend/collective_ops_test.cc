// ops::AllReduce and its relatives, in groups of processes.
#include "frontend/graph/collective_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <sstream>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/process_group.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ops::ReduceOp;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::RunInGroup;
using testing::Values;
using Function = std::function<Tensor(const Tensor&)>;

/// A function as a network.
class FunctionCell : public nn::Cell {
 public:
  MPC_CELL(FunctionCell)
  explicit FunctionCell(Function function) : function_(std::move(function)) {}
  Tensor Construct(Tensor x) { return function_(x); }

 private:
  Function function_;
};

/// The derivative of the sum of function(x) * weights by x, in a process of several that have losses of their own.
class OwnGradient : public nn::TrainingStep {
 public:
  MPC_CELL(OwnGradient, zero)
  OwnGradient(const Shape& shape, Function function, Tensor weights)
      : zero(shape, Zeros()), function_(std::move(function)), weights_(std::move(weights)) {}
  Tensor Construct(Tensor x) { return ops::Backward(reduce_sum(function_(zero + x) * weights_), {zero})[0]; }
  Parameter zero;

 private:
  Function function_;
  Tensor weights_;
};

std::vector<float> GradientOf(const Tensor& at, const Function& function, const Tensor& weights) {
  OwnGradient step(at.shape(), function, weights);
  const Tensor gradient = step(at);
  EXPECT_TRUE(gradient.status().ok()) << gradient.status();
  return gradient.status().ok() ? gradient.ToFloats() : std::vector<float>();
}

/// Elements r + 1 and 10 (r + 1) of rank r.
Tensor Own(int rank) {
  const auto value = static_cast<float>(rank + 1);
  return Tensor::From({value, 10 * value}, {2});
}

TEST(CollectiveOps, CombineTheTensorsOfAllProcesses) {
  for (const int size : {2, 4}) {
    EXPECT_TRUE(RunInGroup(size, [size](int rank) {
      const auto count = static_cast<float>(size);
      const float sum = count * (count + 1) / 2;
      const Tensor own = Own(rank);
      EXPECT_THAT(ops::AllReduce(own).ToFloats(), ElementsAre(sum, 10 * sum));
      EXPECT_THAT(ops::AllReduce(own, ReduceOp::kMean).ToFloats(), ElementsAre(sum / count, 10 * sum / count));
      EXPECT_THAT(ops::AllReduce(own, ReduceOp::kMax).ToFloats(), ElementsAre(count, 10 * count));
      EXPECT_THAT(ops::AllReduce(own.To(DType::kBF16)).To(DType::kF32).ToFloats(), ElementsAre(sum, 10 * sum));
      const Tensor code = Tensor::From<std::int32_t>({rank, -rank}, {2});
      EXPECT_THAT(ops::AllReduce(code, ReduceOp::kMax).data<std::int32_t>(), ElementsAre(size - 1, 0));

      std::vector<float> gathered;
      for (int other = 0; other < size; ++other) {
        for (const float value : Own(other).ToFloats()) gathered.push_back(value);
      }
      const Tensor all = ops::AllGather(reshape(own, {1, 2}));
      EXPECT_EQ(all.shape(), Shape({size, 2}));
      EXPECT_THAT(all.ToFloats(), ElementsAreArray(gathered));
      EXPECT_EQ(ops::AllGather(own).shape(), Shape({2 * size}));
      EXPECT_EQ(ops::AllGather(Tensor::Scalar(1.0f)).shape(), Shape({size}));
      EXPECT_EQ(ops::AllGather(code).dtype(), DType::kI32);

      const Tensor parts = Values({2 * size, 3}, rank);
      std::vector<float> total(static_cast<std::size_t>(parts.size()), 0);
      for (int other = 0; other < size; ++other) {
        const std::vector<float> values = Values({2 * size, 3}, other).ToFloats();
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += values[i];
      }
      const Tensor part = ops::ReduceScatter(parts);
      EXPECT_EQ(part.shape(), Shape({2, 3}));
      const std::vector<float> sums = part.ToFloats();
      for (std::size_t i = 0; i < sums.size(); ++i) {
        // Values have 24 bits below 1: a few sums of two to four of them round, in another order than here.
        EXPECT_NEAR(sums[i], total[static_cast<std::size_t>(rank) * 6 + i], 4 * 0x1p-23) << i;
      }
    }));
  }
}

TEST(CollectiveOps, BroadcastSendsTheBitsOfTheRoot) {
  EXPECT_TRUE(RunInGroup(4, [](int rank) {
    for (const int root : {0, 3}) {
      // Denormal and negative zero keep their bits; what the others have does not matter.
      const std::vector<float> sent = {-0.0f, 0.0f, 0x1p-149f, -1.5f, testing::kInfinity};
      const std::vector<float> other(5, testing::kNan);
      const Tensor y = ops::Broadcast(Tensor::From(rank == root ? sent : other, {5}), root);
      ASSERT_TRUE(y.status().ok()) << y.status();
      EXPECT_EQ(std::memcmp(y.bytes().data(), sent.data(), y.bytes().size()), 0) << "root " << root;
      const Tensor number = ops::Broadcast(Tensor::From<std::int64_t>({std::int64_t{1} << 40, rank}, {2}), root);
      EXPECT_THAT(number.data<std::int64_t>(), ElementsAre(std::int64_t{1} << 40, root));
    }
  }));
}

TEST(CollectiveOps, GradientsAreThoseOfAllLosses) {
  EXPECT_TRUE(RunInGroup(2, [](int rank) {
    // The loss of rank r weighs elements by r + 1 and 10 (r + 1): the weights of all sum to 3 and 30.
    const Tensor weights = Own(rank), own = Own(rank);
    EXPECT_THAT(GradientOf(
                    own, [](const Tensor& x) { return ops::AllReduce(x); }, weights),
                ElementsAre(3, 30));
    EXPECT_THAT(GradientOf(
                    own, [](const Tensor& x) { return ops::AllReduce(x, ReduceOp::kMean); }, weights),
                ElementsAre(1.5, 15));
    const std::vector<float> of_largest = rank == 1 ? std::vector<float>{3, 30} : std::vector<float>{0, 0};
    EXPECT_THAT(GradientOf(
                    own, [](const Tensor& x) { return ops::AllReduce(x, ReduceOp::kMax); }, weights),
                ElementsAreArray(of_largest));
    const std::vector<float> of_root = rank == 0 ? std::vector<float>{3, 30} : std::vector<float>{0, 0};
    EXPECT_THAT(GradientOf(
                    own, [](const Tensor& x) { return ops::Broadcast(x); }, weights),
                ElementsAreArray(of_root));

    // Rank r weighs the gathered elements by 1 to 4, times r + 1.
    const Tensor of_all = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {4}) * (rank + 1.0);
    const std::vector<float> of_part = rank == 0 ? std::vector<float>{3, 6} : std::vector<float>{9, 12};
    EXPECT_THAT(GradientOf(
                    own, [](const Tensor& x) { return ops::AllGather(x); }, of_all),
                ElementsAreArray(of_part));

    // Elements 0 and 1 become rank 0's, which weighs them by 1 and 10; elements 2 and 3 rank 1's.
    EXPECT_THAT(GradientOf(
                    Values({4}, rank), [](const Tensor& x) { return ops::ReduceScatter(x); }, weights),
                ElementsAre(1, 10, 2, 20));
  }));
}

TEST(CollectiveOps, AreTheIdentityInOneProcess) {
  EXPECT_TRUE(test::RunProcesses(1, [](int) {
    const Tensor x = Values({2, 3});
    for (const Function& function : std::vector<Function>{
             [](const Tensor& t) { return ops::AllReduce(t); },
             [](const Tensor& t) { return ops::AllReduce(t, ReduceOp::kMean); },
             [](const Tensor& t) { return ops::AllReduce(t, ReduceOp::kMax); },
             [](const Tensor& t) { return ops::AllGather(t); },
             [](const Tensor& t) { return ops::ReduceScatter(t); },
             [](const Tensor& t) { return ops::Broadcast(t, 0); },
         }) {
      FunctionCell cell(function);
      for (const Tensor& y : {function(x), cell(x)}) {
        EXPECT_EQ(y.shape(), x.shape());
        EXPECT_EQ(y.ToFloats(), x.ToFloats());
      }
    }
    EXPECT_THAT(ErrorOf(ops::Broadcast(x, 1)), HasSubstr("ops::Broadcast takes a root_rank from 0 to 0, got 1"));
    return 0;
  }));
}

TEST(CollectiveOps, NameWhatTheyDoNotTake) {
  EXPECT_TRUE(RunInGroup(2, [](int) {
    const Tensor integers = Tensor::From<std::int32_t>({1, 2}, {2});
    EXPECT_THAT(ErrorOf(ops::AllReduce(integers)),
                HasSubstr("ops::AllReduce takes a floating tensor; cast integers first, got tensor<2xi32>"));
    EXPECT_THAT(ErrorOf(ops::AllReduce(integers.To(DType::kI64), ReduceOp::kMax)),
                HasSubstr("takes a floating or an i32 tensor, got tensor<2xi64>"));
    EXPECT_THAT(ErrorOf(ops::ReduceScatter(integers)), HasSubstr("ops::ReduceScatter takes a floating tensor"));
    EXPECT_THAT(ErrorOf(ops::ReduceScatter(Values({3, 2}))),
                HasSubstr("ops::ReduceScatter splits axis 0 into equal parts of 2 processes, got tensor<3x2xf32>"));
    EXPECT_THAT(ErrorOf(ops::Broadcast(Values({2}), 2)), HasSubstr("takes a root_rank from 0 to 1, got 2"));
    EXPECT_THAT(ErrorOf(ops::Broadcast(Values({2}), -1)), HasSubstr("got -1"));
    EXPECT_THAT(ErrorOf(ops::AllGather(Tensor())), HasSubstr("ops::AllGather was given an undefined tensor"));
  }));
}

/// Every way to read a tensor, of one that is only an error.
void ExpectNothingToRead(const Tensor& failed) {
  EXPECT_FALSE(failed.status().ok());
  EXPECT_EQ(failed.size(), 0);
  EXPECT_TRUE(failed.bytes().empty());
  EXPECT_TRUE(failed.data<float>().empty());
  EXPECT_TRUE(failed.ToFloats().empty());
  EXPECT_EQ(failed.TryItem<float>().status(), failed.status());
  EXPECT_EQ(failed.To(DType::kF16).status(), failed.status());
  EXPECT_EQ(failed.Save(::testing::TempDir() + "/failed.npy"), failed.status());
  std::ostringstream text;
  text << failed;
  EXPECT_THAT(text.str(), HasSubstr(ErrorOf(failed)));
  EXPECT_EQ(Parameter(Tensor::Scalar(1.0f)).SetData(failed), failed.status());
  EXPECT_EQ(Loss().Update(failed, Values({2}), Values({2})), failed.status());
  EXPECT_EQ(Loss().Update(Tensor::Scalar(1.0f), failed, Values({2})), failed.status());
}

TEST(CollectiveOps, LeaveNothingToReadWhereTheyFail) {
  EXPECT_TRUE(RunInGroup(2, [](int) {
    ExpectNothingToRead(ops::ReduceScatter(Values({5})));
    ExpectNothingToRead(ops::matmul(Values({5}), Values({1, 2})));
    FunctionCell cell([](const Tensor& x) { return ops::ReduceScatter(x); });
    ExpectNothingToRead(cell(Values({5})));
  }));
}

TEST(CollectiveOps, TakeAPowerOfTwoOfProcesses) {
  EXPECT_TRUE(RunInGroup(3, [](int) {
    EXPECT_THAT(ErrorOf(ops::AllReduce(Values({2}))), HasSubstr("is for 3 processes; their number is a power of two"));
  }));
}

/// A Model evaluates as many batches as a rank has: others may have fewer.
TEST(CollectiveOps, AreRefusedWhereAModelRunsOneProcessAlone) {
  EXPECT_TRUE(RunInGroup(2, [](int) {
    FunctionCell network([](const Tensor& x) { return ops::AllReduce(x); });
    Model model(network);
    EXPECT_THAT(ErrorOf(model.Predict(Values({2, 3})).status()),
                HasSubstr("ops::AllReduce belongs into a step that all processes run. This one is run by each of 2 "
                          "processes alone"));
  }));
}

/// A Program stays with its group. In another one the Cell is traced anew.
TEST(CollectiveOps, FollowTheGroupThatIsThere) {
  const std::vector<int> ports = {test::FreePort(), test::FreePort()};
  EXPECT_TRUE(test::RunProcesses(4, [&ports](int rank) {
    FunctionCell cell([](const Tensor& x) { return ops::AllReduce(x); });
    const Tensor one = Tensor::From({1.0f}, {1});
    EXPECT_THAT(cell(one).ToFloats(), ElementsAre(1));
    MPC_EXPECT_OK(testing::JoinGroup(rank, 4, ports[0]));
    EXPECT_THAT(cell(one).ToFloats(), ElementsAre(4));
    distributed::Finalize();
    EXPECT_THAT(cell(one).ToFloats(), ElementsAre(1));
    if (rank >= 2) return 0;
    MPC_EXPECT_OK(testing::JoinGroup(rank, 2, ports[1]));
    EXPECT_THAT(cell(one).ToFloats(), ElementsAre(2));
    distributed::Finalize();
    return 0;
  }));
}

}  // namespace
}  // namespace mpc
