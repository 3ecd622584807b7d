#include "scenarios/readers/scenario_shape.h"

#include "scenarios/readers/arrival_options.h"
#include "scenarios/readers/collective_pins.h"
#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/job_request.h"
#include "scenarios/readers/memory_options.h"
#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/network_options.h"
#include "scenarios/readers/perturbation.h"
#include "scenarios/readers/pipeline_reader.h"
#include "scenarios/readers/placement.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/readers/search_options.h"
#include "scenarios/readers/software.h"
#include "scenarios/readers/strategy_reader.h"
#include "scenarios/readers/training_reader.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/device_file.h"
#include "topology/files/edits.h"

namespace rehearse {

const ObjectShape& ScenarioShape() {
  static const ObjectShape shape = {
      "scenario",
      "One training step of one model with one strategy on one cluster; or jobs that share it.",
      {SchemaForEditors(),
       {"name", AText(), Required(), "what results are called", "\"gpt-20b on 16 A100\""},
       {"description", AText(), Default("\"\""), "for people", "\"AxoNN's 4D, all optimisations\""},
       {"cluster", ClusterShape(), Required(), "what it runs on", "\"perlmutter:nodes=4\""},
       {"model", ModelShape(), Optional("\"jobs\""), "what is trained", R"({"preset": "gpt-20b"})"},
       {"training", ObjectOf(TrainingShape), Optional("\"jobs\""), "how long the step is",
        R"({"batch": 16, "sequence": 2048, "recomputation": "full"})"},
       {"strategy", StrategyShape(), Optional("\"jobs\""), "how the ranks share the work",
        R"({"kind": "data-parallel", "data": 16, "overlap_gradients": true})"},
       {"pipeline", ObjectOf(PipelineShape), Optional("none: every rank has the whole depth"),
        "stages of layers, each on a mesh of the strategy", R"({"stages": 8, "schedule": "1f1b"})"},
       {"software", SoftwareShape(), Optional("switches are given"),
        "the framework whose switches to use (rehearse list software)", "\"fsdp-eager\""},
       {"placement", OwnPlacementShape(), Optional("as many ranks as devices, in their order"),
        "which device each rank runs on", "\"block\""},
       {"jobs", ListOf(ObjectOf(JobShape)), Optional("one step"),
        "steps that share the cluster, instead of model, training, strategy and placement",
        R"([{"scenario": "a.json", "placement": "0-63"}])"},
       {"arrivals", ObjectOf(ShapeIn<ArrivalFields>), Optional("one step, or \"jobs\""),
        "jobs as they come, for rehearse run, instead of model, training, strategy and placement",
        R"({"trace": "philly.json"})"},
       {"calibration", CalibrationInputShape(), Optional("as specified"),
        "what was measured on such a machine", "\"mine.json\""},
       {"device_points", AText("path of a CSV file, from this one"), Optional("none"),
        "measured times of exact products and attention cores", "\"mine.csv\""},
       {"edits", EditsShape(), Default("[]"), "changes to links and devices, made in order",
        R"([{"links": "node3/nic*", "bandwidth": "0.5x"}])"},
       {"simulator", ObjectOf(SimulatorShape), Optional("its defaults"), "how the step is played",
        R"({"fidelity": "fluid"})"},
       {"memory", ObjectOf(ShapeIn<MemoryOptionsFields>), Optional("all of it may be used"),
        "what must stay free, and how arrays are allocated", R"({"headroom": "5%"})"},
       {"run", ObjectOf(ShapeIn<RunFields>), Optional("one step"),
        "weeks of such steps: what fails, what is lost, when the tokens are done",
        R"({"tokens": "15T", "checkpoint": {"storage_bandwidth": "2TBps"}})"},
       {"costs", CostsShape(), Optional("not told"),
        "prices and powers of what the cluster is made of", "\"prices.json\""},
       {"search", ObjectOf(ShapeIn<SearchFields>), Optional("grids and micro-batches, by time"),
        "what `rehearse search` tries", R"({"objective": "tokens"})"}}};
  return shape;
}

const Fields<SimulatorOptions>& SimulatorFields() {
  constexpr int64_t kMostMultiprocessors = 1 << 16;
  using Options = SimulatorOptions;
  const auto of_lowering = [](const Field<LowerOptions>& row) {
    return row.Within(&Options::lowering);
  };
  const auto of_nccl = [&](const Field<NcclSettings>& row) {
    return of_lowering(row.Within(&LowerOptions::nccl));
  };
  const auto of_routing = [](const Field<FabricRouting>& row) {
    return row.Within(&Options::routing);
  };
  static const Fields<Options> fields(
      "simulator", "How the step is played on the cluster.",
      {of_lowering(
           {"fidelity", &LowerOptions::fidelity, OneUpTo<Fidelity::kPacket>(), Usual(),
            "formula: closed forms without contention; fluid: a flow for each channel; "
            "step: a flow for each edge and step; packet: the same, packet by packet between "
            "machines"}),
       of_lowering({"channels", &LowerOptions::channels, AWhole(0, kMostChannels), Usual(),
                    "at most this many channels (rings or trees) at a time; 0 leaves it to the "
                    "search",
                    "4"}),
       PinnedAlgorithm(),
       PinnedProtocol(),
       of_nccl({"nccl", &NcclSettings::version, OneNamedOf(kNcclVersions), Usual(),
                "the release of NCCL whose model chooses where the algorithm or protocol is auto"}),
       of_nccl({"nvls", &NcclSettings::nvls, TrueFalse(), Usual(),
                "whether NCCL may sum in NVLink switches, as NCCL_NVLS_ENABLE would set it"}),
       of_lowering({"copy_engines", &LowerOptions::copy_engines, ListOf(AText()), Usual(),
                    "axes whose collectives are moved by copy engines: no kernel beside them is "
                    "slowed down",
                    R"(["tensor"])"}),
       {"collectives", PinsShape(), Default("[]"), "algorithm and protocol of some collectives",
        R"([{"kind": "all-reduce", "axis": "data", "algorithm": "tree"}])"},
       of_lowering(
           {"slowdown", &LowerOptions::slowdown, ObjectIn<SlowdownFields>(),
            Optional("the devices' own, or their family's"),
            "how much kernels slow down while their device communicates, and transfers while it "
            "computes",
            R"({"gemm": 0.1})"}),
       {"communication_multiprocessors", &Options::communication_multiprocessors,
        AWhole(1, kMostMultiprocessors), Optional("as the devices' family, or \"slowdown\""),
        "multiprocessors that kernels of communication always keep to themselves (DeepSeek-V3: 20 "
        "of the H800's 132); products and attention cores are cut for the others",
        "20"},
       of_routing({"routing", &FabricRouting::choice, OneUpTo<RouteChoice::kDimensionOrder>(),
                   Optional("the fabric's own"), "how one of the fabric's equal paths is chosen",
                   "\"ecmp\""}),
       of_routing({"queue_pairs", &FabricRouting::queue_pairs, AWhole(1, kMostQueuePairs),
                   Optional("the fabric's own"),
                   "queue pairs of a pair of ranks, each hashed separately (ecmp)", "4"}),
       of_routing({"routing_seed", &FabricRouting::seed, AWhole(0, kMostRoutingSeed),
                   Optional("the median of 8 seeds where it matters"),
                   "seed of ecmp's hash and of valiant's detours", "1"}),
       of_routing({"pxn", &FabricRouting::pxn, TrueFalse(), Usual(),
                   "whether messages between rails begin over NVLink with the neighbour that is on "
                   "the receiver's rail; NCCL_PXN_DISABLE=1 is false"}),
       of_routing({"cross_nic", &FabricRouting::cross_nic, TrueFalse(), Usual(),
                   "whether rings may leave a machine by one rail's NIC and enter the next by "
                   "another's; NCCL_CROSS_NIC=1 is true"}),
       of_lowering({"network", &LowerOptions::network, ObjectIn<NetworkOptionsFields>(),
                    Optional("what such a network does"), "how packets travel, at fidelity packet",
                    R"({"link_control": "pfc", "buffer": "400kB"})"}),
       {"perturbation", ObjectOf(PerturbationShape), Optional("everything is steady"),
        "jitter, stragglers, links that fail", R"({"seed": 7, "compute_jitter": 0.03})"}});
  return fields;
}

const ObjectShape& SimulatorShape() { return SimulatorFields().shape(); }

}  // namespace rehearse
