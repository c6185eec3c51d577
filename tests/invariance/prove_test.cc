// The proof itself under test: all conditions hold on the tiny model, each broken rule is caught with its first site, and
// what did not happen or did not run is never called same.

#include "prove/prove.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prove/prove_report.h"
#include "prove/start_up_check.h"

namespace samebits {
namespace {

const std::string kModel = SB_SOURCE_DIR "/models/tiny-v32";

class ProveTest : public ::testing::Test {
 protected:
  ProveTest() : pool_(2) {
    Result<std::unique_ptr<Model>> model = Model::Load(kModel, context());
    EXPECT_TRUE(model.ok()) << model.status().text();
    model_ = std::move(*model);
    for (int32_t i = 0; i < 150; ++i) options_.prompt.push_back((i * 7919 + 11) % 1900 + 40);
    options_.sampling = {.temperature = 0.7f, .seed = 3};
    options_.max_tokens = 24;
    options_.progress = false;
  }
  CpuContext context() { return CpuContext{&pool_, BestIsa()}; }
  Result<ProveReport> Run() {
    return Prove(model_.get(), kModel, context(), options_, [](const ConditionResult&) {});
  }
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  ProveOptions options_;
};

TEST_F(ProveTest, EveryConditionACpuCanRunHoldsAndReallyHappened) {
  const Result<ProveReport> report = Run();
  ASSERT_TRUE(report.ok()) << report.status().text();
  EXPECT_FALSE(report->AnyDiffers()) << ProveSummary(*report);
  int same = 0;
  for (const ConditionResult& c : report->conditions) {
    if (c.verdict == Verdict::kNotRun) {
      EXPECT_TRUE(c.name == "graph" || c.name == "process" || c.name == "parallel" || c.name == "device") << c.name;
      EXPECT_FALSE(c.evidence.empty());
      continue;
    }
    ++same;
    EXPECT_GT(c.rows_compared + c.kv_rows_compared, 1000) << c.name;
    EXPECT_FALSE(c.evidence.empty()) << c.name;
  }
  EXPECT_EQ(same, 11);
}

TEST_F(ProveTest, EachBrokenRuleIsCaughtAndItsFirstSiteNamed) {
  struct Case {
    const char* rule;
    std::vector<std::string> conditions;
    const char* site;  // part of the first site's name
  };
  const Case cases[] = {{"index-order", {"again"}, "topk"},          {"topk-tie", {"again"}, "topk"},
                        {"topk-set-sorted-late", {"again"}, "topk"}, {"router-bf16", {"contract"}, "expert"},
                        {"double-rounding", {"contract"}, "layer"},  {"split-by-batch", {"decode"}, "layer"},
                        {"chunk-blocks", {"chunks"}, "layer 0"},     {"threads", {"threads"}, "layer"}};
  EXPECT_EQ(std::size(cases), BreakNames().size());
  for (const Case& c : cases) {
    SCOPED_TRACE(c.rule);
    options_.broken = *BreakFromName(c.rule);
    options_.only = c.conditions;
    const Result<ProveReport> report = Run();
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_TRUE(report->AnyDiffers());
    const ConditionResult& first = report->conditions.at(0);
    EXPECT_NE(first.first_site.find(c.site), std::string::npos) << first.first_site;
    EXPECT_FALSE(first.cause.empty());
    EXPECT_EQ(first.growth.size(), 6u);
    const std::string html = ProveHtml(*report);
    EXPECT_NE(html.find("<h1>Bits depend on"), std::string::npos);
    const bool grew =
        std::any_of(first.growth.begin(), first.growth.end(), [](const GrowthPoint& g) { return g.max_abs > 0; });
    EXPECT_EQ(html.find("<svg") != std::string::npos, grew);
    EXPECT_EQ(html.find("http"), std::string::npos) << "the report is self-contained";
  }
}

TEST_F(ProveTest, ATieIsToldApartFromAnOrder) {
  options_.only = {"again"};
  options_.broken = *BreakFromName("index-order");
  const Result<ProveReport> order = Run();
  ASSERT_TRUE(order.ok());
  EXPECT_TRUE(order->conditions.at(0).sites.order_only);
  options_.broken = *BreakFromName("topk-set-sorted-late");
  const Result<ProveReport> tie = Run();
  ASSERT_TRUE(tie.ok());
  EXPECT_FALSE(tie->conditions.at(0).sites.order_only);
  EXPECT_NE(tie->conditions.at(0).cause.find("tie"), std::string::npos);
}

TEST_F(ProveTest, WhatDoesNotComeAboutIsAnErrorNotSame) {
  options_.prompt.resize(5);  // too short to be cut into chunks of 37
  options_.only = {"chunks"};
  const Result<ProveReport> report = Run();
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().text().find("condition chunks did not come about"), std::string::npos)
      << report.status().text();
  options_.only = {"graph"};
  EXPECT_FALSE(Run().ok());
  options_.only = {"nonsense"};
  EXPECT_FALSE(Run().ok());
  EXPECT_FALSE(BreakFromName("nonsense").ok());
}

// The self-test fails closed: another hash in the repository, or flushed denormals, refuse the contract.
TEST_F(ProveTest, TheStartUpCheckHoldsOnEveryInstructionSet) {
  for (const Isa isa : AvailableIsas()) EXPECT_TRUE(RequireContract(CpuContext{&pool_, isa}).ok()) << IsaName(isa);
  std::vector<ManifestRow> rows = RunSelfTest(context());
  EXPECT_EQ(rows.size(), 16u);
  rows[0].expected ^= 1;
  EXPECT_FALSE(rows[0].proven());
}

#if defined(__x86_64__)
TEST_F(ProveTest, FlushedDenormalsRefuseTheContract) {
  const unsigned saved = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(saved | 0x8040);  // FTZ and DAZ, as a fast-math library sets them
  const Status status = RequireContract(context());
  __builtin_ia32_ldmxcsr(saved);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.text().find("flushes denormals"), std::string::npos);
}
#endif

}  // namespace
}  // namespace samebits
