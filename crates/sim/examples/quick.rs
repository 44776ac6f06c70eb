use temponet_sim::*; use temponet_sim::generate::*; use temponet_task::*; use std::time::Instant;
fn main(){
  for (n,m,u,sch) in if std::env::args().nth(1).is_some(){vec![(5,1,0.9,"edf");1]} else {vec![(5,1,0.9,"edf"),(100,8,7.0,"edf"),(600,8,7.0,"edf"),(5,1,0.9,"llf"),(100,8,7.0,"llf"),(100,8,7.0,"srpt"),(100,8,9.0,"mh-edf"),(100,8,7.0,"p-edf"),(100,8,7.0,"pd2")]}{
    let spec=Spec{tasks:n,cores:m,utilization:u,periods:(Time::from_ms(10),Time::from_ms(100)),granularity:Time::from_us(1)};
    let set=uunifast(&spec,1);
    let rate:f64=set.tasks.iter().map(|t|1.0/t.period().unwrap().as_secs_f64()).sum();
    let horizon=Time((std::env::args().nth(2).map_or(2e6,|x|x.parse().unwrap())/rate*1e9) as u64);
    let mut s=temponet_sched::build(sch).unwrap();
    let t=Instant::now();
    let r=simulate(&set,1,horizon,&mut *s,&mut Unobserved).unwrap();
    let dt=t.elapsed().as_secs_f64();
    println!("{sch} n={n} m={m} jobs={} met={} {:.2} Mjobs/s decisions/job {:.2}",r.jobs.released,r.jobs.met,r.jobs.released as f64/dt/1e6,r.decisions as f64/r.jobs.released as f64);
  }
}
