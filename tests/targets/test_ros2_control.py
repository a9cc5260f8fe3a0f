"""The controller of docs/guides/ros2-control.md, compiled and run against stand-ins for ROS."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mbcasadi as mb
from mbcasadi import models
from mbcasadi.codegen.compiler import find_compiler
from mbcasadi.validation import demo
from mbcasadi.validation.spec import build_experiment, example_inputs, read_spec

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "ros2-control.md"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
HEADERS = {
    "controller_interface/controller_interface.hpp": """
#pragma once
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "rclcpp/rclcpp.hpp"
namespace hardware_interface {
class LoanedStateInterface {
 public:
  explicit LoanedStateInterface(const double *value) : value_(value) {}
  std::optional<double> get_optional() const {
    return value_ ? std::optional<double>(*value_) : std::nullopt;
  }
 private:
  const double *value_;
};
class LoanedCommandInterface {
 public:
  explicit LoanedCommandInterface(double *value) : value_(value) {}
  bool set_value(double value) { *value_ = value; return true; }
 private:
  double *value_;
};
}
namespace controller_interface {
enum class CallbackReturn { SUCCESS, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { INDIVIDUAL };
struct InterfaceConfiguration {
  interface_configuration_type type;
  std::vector<std::string> names;
};
class ControllerInterface {
 public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State &) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State &) = 0;
  virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;
  unsigned get_update_rate() const { return update_rate; }
  std::shared_ptr<rclcpp::Node> get_node() const { return node_; }
  unsigned update_rate = 1000;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
 private:
  std::shared_ptr<rclcpp::Node> node_ = std::make_shared<rclcpp::Node>();
};
}
""",
    "hardware_interface/types/hardware_interface_type_values.hpp": """
#pragma once
namespace hardware_interface {
constexpr char HW_IF_POSITION[] = "position";
constexpr char HW_IF_VELOCITY[] = "velocity";
constexpr char HW_IF_EFFORT[] = "effort";
}
""",
    "rclcpp/rclcpp.hpp": """
#pragma once
#include <cstdio>
namespace rclcpp {
struct Time {};
struct Duration {};
struct Logger {};
struct Node { Logger get_logger() const { return {}; } };
}
namespace rclcpp_lifecycle { struct State {}; }
#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__))
#define RCLCPP_WARN(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__))
""",
    "pluginlib/class_list_macros.hpp": "#define PLUGINLIB_EXPORT_CLASS(type, base)\n",
}
MAIN = """
#include "four_bar_controller.cpp"
#include <cstdio>
int main() {
  four_bar_ros::FourBarController controller;
  double values[6] = {0}, effort = 0;
  for (const auto &name : controller.state_interface_configuration().names)
    std::printf("%s ", name.c_str());
  std::printf("%s\\n", controller.command_interface_configuration().names[0].c_str());
  for (const double &value : values) controller.state_interfaces_.emplace_back(&value);
  controller.command_interfaces_.emplace_back(&effort);
  controller.update_rate = 500;
  if (controller.on_configure({}) == controller_interface::CallbackReturn::SUCCESS) return 1;
  controller.update_rate = 1000;
  if (controller.on_configure({}) != controller_interface::CallbackReturn::SUCCESS) return 2;
  controller.on_activate({});
  while (std::scanf("%lf %lf %lf %lf %lf %lf", values, values + 1, values + 2, values + 3,
                    values + 4, values + 5) == 6) {
    if (controller.update({}, {}) != controller_interface::return_type::OK) return 3;
    std::printf("%.17g\\n", effort);
  }
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++: apt-get install g++")
@pytest.mark.long
def test_the_controller_of_the_page_computes_what_the_c_computes(tmp_path):
    model = Path(models.path("four_bar"))
    spec = read_spec(Path(demo.__file__).parent / "four_bar.toml")
    experiment = build_experiment(spec, model)
    example = example_inputs(experiment)[""]
    project = mb.export_c(experiment.all_laws[""], tmp_path / "four_bar_c", example=example)
    page = PAGE.read_text(encoding="utf-8")
    source = re.search(r"```cpp\n(.*?)```", page, re.DOTALL)
    assert source
    (tmp_path / "four_bar_controller.cpp").write_text(source[1], encoding="utf-8")
    (tmp_path / "main.cpp").write_text(MAIN, encoding="utf-8")
    for name, text in HEADERS.items():
        (tmp_path / "ros" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ros" / name).write_text(text, encoding="utf-8")
    law = tmp_path / "law.o"
    command = [*find_compiler(), "-std=c99", "-O3", "-c", str(project.source), "-o", str(law)]
    subprocess.run(command, check=True)
    program = tmp_path / "program"
    command = ["g++", "-std=c++17", *WARNINGS, f"-I{project.folder}", "-isystem", "ros"]
    subprocess.run(
        [*command, "main.cpp", str(law), "-lm", "-o", str(program)], cwd=tmp_path, check=True
    )

    measured = np.random.default_rng(1).uniform(-0.2, 0.2, (20, 6))
    measured[7, 3] = np.nan
    text = "\n".join(" ".join(repr(float(x)) for x in row) for row in measured)
    process = subprocess.run([str(program)], input=text, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    head, *rows = process.stdout.splitlines()
    joints = [c["components"] for c in project.manifest["inputs"][:2]]
    names = [f"{j}/position" for j in joints[0]] + [f"{j}/velocity" for j in joints[1]]
    assert head.split() == [*names, "crank/effort"]
    assert "bad input, safe output" in process.stderr

    memory, z = project.memory(), np.array(project.manifest["z0"])
    ref = [0.0, 0.0, 0.0]  # the crank's angle at activation
    for row, line in zip(measured, rows, strict=True):
        call = {"q": row[:3], "v": row[3:], "ref": ref, "mask": [1.0], "z": z}
        outputs = project.step(memory, call)
        z = outputs["z_next"]
        assert float(line) == outputs["u"][0]
