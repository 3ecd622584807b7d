// tools/published-rows, which turns tables of published runs into one for `rehearse validate`, and
// tools/cross-checks, which fits a number to some rows and predicts others.
#include "tests/support/places.h"
#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace published_rows_test {

using ::testing::HasSubstr;
using ::testing::Not;

class PublishedRowsTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (Shell("python3 -c '' 2> /dev/null") != 0) GTEST_SKIP() << "no python3";
  }
  static std::string Tool(const std::string& name) {
    return "python3 '" + SourceDir() + "/tools/" + name + "' ";
  }
};

constexpr const char* kNemo =
    "# from a page\n"
    "doc_date,container,section,model,task,gpu,precision,gpus,gbs,mbs,seq,tp,pp,cp,vp,dp_derived,"
    "ga_derived,tokens_per_s_per_gpu,model_tflops_per_gpu,step_s_derived,note,source\n"
    "2024-08-12,NeMo24.07,Pretraining,LLAMA2-7B,pretrain,H100,FP8,8,128,1,4096,1,1,1,1,8,16,16847,"
    "776,3.8901,,a page\n"
    "2024-08-12,NeMo24.07,Pretraining,GPT3-175B,pretrain,H100,FP8,128,256,1,2048,4,8,1,6,4,64,726,"
    "782,5.6419,,a page\n";

TEST_F(PublishedRowsTest, ATableBecomesRowsThatValidateReads) {
  // The second row has 8 stages and is left out; other tables are missing, which is reported.
  Write("nemo_2407_part.csv", kNemo);
  ASSERT_EQ(Shell(Tool("published-rows") + ". > rows.csv 2> err.txt"), 0);
  EXPECT_THAT(ReadFile(folder_ / "err.txt"), HasSubstr("mlperf_part.csv is missing: left out"));
  const Outcome validated = Execute("validate rows.csv --format csv");
  EXPECT_EQ(validated.code, 0) << validated.err;
  EXPECT_THAT(validated.out, HasSubstr("llama2-7b pretrain fp8 s4096 on 8 H100"));
  EXPECT_THAT(validated.out, HasSubstr(",3.8901,"));
  EXPECT_THAT(validated.out, Not(HasSubstr("175b")));
}

TEST_F(PublishedRowsTest, OneNumberFittedToSomeRowsPredictsOthers) {
  // Three rows of A are measured 1.1 times as long as predicted, so B's error of 1/1.32 - 1 becomes
  // 1.1/1.32 - 1 = -1/6.
  Write("t.csv",
        "name,software,strategy.kind,strategy.data,training.sequence\n"
        "1,s,data-parallel,8,2048\n2,s,data-parallel,8,2048\n3,s,data-parallel,8,2048\n"
        "4,s,data-parallel,8,2048\n");
  Write("v.csv",
        "row,group,measured_seconds,predicted_seconds\n"
        "1,\"A, s\",1.1,1\n2,\"A, s\",2.2,2\n3,\"A, s\",3.3,3\n4,\"B, s\",1.32,1\n");
  ASSERT_EQ(Shell(Tool("cross-checks") + "t.csv < v.csv > table.txt"), 0);
  EXPECT_THAT(ReadFile(folder_ / "table.txt"),
              HasSubstr("| s: A -> B | 3 | 1.100 | 1 | 24.2 % | 16.7 % | -16.7 % |"));
}

}  // namespace published_rows_test
}  // namespace rehearse
